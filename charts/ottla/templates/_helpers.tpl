{{- define "ottla.name" -}}
{{- if contains "ottla" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-ottla{{ end }}-operator
{{- end }}

{{- define "ottla.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "ottla.name" .) }}
{{- end }}

{{- define "ottla.labels" -}}
app.kubernetes.io/name: ottla
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "ottla.selector" -}}
app.kubernetes.io/name: ottla
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}
