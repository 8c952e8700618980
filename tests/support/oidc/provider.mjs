// A certified OpenID provider: client credentials for one client, access tokens as JWT.
// provider.mjs PACKAGES PORT KEYS, where KEYS is a file with private keys as a JWK set.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, port, keys] = process.argv.slice(2);
const entry = createRequire(packages + '/package.json').resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(entry));
const issuer = `http://127.0.0.1:${port}`;
const resource = 'urn:kafka';

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'app',
    client_secret: 'the secret of the app',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    token_endpoint_auth_method: 'client_secret_basic',
  }],
  jwks: JSON.parse(readFileSync(keys)),
  scopes: ['kafka'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      getResourceServerInfo: () => ({
        scope: 'kafka',
        audience: 'fleet',
        accessTokenTTL: 120,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
