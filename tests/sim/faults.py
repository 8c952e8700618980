"""What goes wrong in a history, and what people do to a fleet meanwhile. Chosen by the seed."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ottla.raft.core.elections import Role
from sim.disk import MORE, ROOT
from sim.node import Life, SimNode
from sim.virtual_loop import Slowness

if TYPE_CHECKING:
    from sim.world import World

__all__ = ["Faults"]

FULL_SECONDS = 6.0
SLOW_SECONDS = 0.4
HELD_SECONDS = (0.3, 1.0, 4.0, 8.0)  # a stop waits for a data loop that is held for ten
RESTART_CHECK_SECONDS = 0.5
PAUSED_SECONDS = (0.2, 1.0, 4.0, 7.0)  # sessions last three
SLOWNESS = ((0.002, 0.5), (0.02, 0.05), (0.2, 0.004))  # chance of a callback, and seconds


class Faults:
    def __init__(self, world: "World") -> None:
        self._world = world
        self.random = world.random
        self.nodes = world.nodes
        self._is_over = False
        self.loop, self.network, self.referee = world.loop, world.network, world.referee
        self._deeds: tuple[tuple[int, Callable[[], None]], ...] = (
            (4, self._crash_one),
            (4, self._lose_power_of_one),
            (2, self._crash_controller),
            (4, self._partition),
            (3, self._heal_network),
            (2, self._weather),
            (2, self._slow_disk),
            (1, self._fail_syncs),
            (2, self._nothing),
            (3, self._stop_one),
            (2, self._fill_disk),
            (3, world.topics.move_one),
            (2, world.topics.renew),
            (2, self.hold_data_loop),
        )
        options = world.options
        if options.pauses:
            self._pausing = world.stream("pauses")
            self._deeds += ((3, self._pause), (2, self._slow_loop))
        if options.cleaning:
            self._deeds += ((4, world.topics.delete_records),)
        if world.all_durable:
            self._powers = world.stream("powers")
            self._deeds += ((6, self._black_out),)

    def deed(self) -> None:
        weights = [weight for weight, _ in self._deeds]
        self.random.choices([deed for _, deed in self._deeds], weights)[0]()

    def end(self) -> None:
        """No more of it; what was set off, such as a crash in the next write, still happens."""
        self._is_over = True
        self.network.cut.clear()
        self.network.drop, self.network.delay_max_s = 0.0, 0.002
        for node in self.nodes:
            if node.life is not None:
                node.life.process.slowness = None
            if node.life is not None and not node.life.disk.fail_syncs:
                node.life.threads.delay_max_s = 0.001
                node.life.disk.crash_in = None
                if MORE in node.platter.full:
                    self._restart_cleanly(node, node.life)
        self.start_all()

    def start_all(self) -> None:
        for node in self.nodes:
            if node.life is None:
                node.start()

    def _nothing(self) -> None:
        pass

    # -- processes

    def _crash_one(self) -> None:
        self._crash(self.random.choice(self.nodes))

    def _crash_controller(self) -> None:
        for node in self.nodes:
            if node.life is not None and node.life.hears and node.life.quorum.driver.raft.role is Role.LEADER:
                self._crash(node)

    def _crash(self, node: SimNode) -> None:
        if not self._may_crash(node):
            return
        node.unclean = True
        self._begin_crash(node, power=False)

    def _begin_crash(self, node: SimNode, *, power: bool) -> None:
        """At once, or in the middle of what it writes next."""
        assert node.life is not None
        node.crashing = node.life
        if self.random.random() < 0.5:
            node.life.disk.crash_in = self.random.randint(1, 12)
            self.loop.later(0.5, self._end, node, node.life, power)
        else:
            self._end(node, node.life, power)
        self._restart_later(node)

    def _may_crash(self, node: SimNode) -> bool:
        """Any number of nodes, but none while another has lost what it did not sync."""
        if self._world.all_durable:
            return node.life is not None
        return node.life is not None and not any(other.power_lost for other in self.nodes if other is not node)

    def _end(self, node: SimNode, life: Life, power: bool) -> None:
        if node.life is life:
            if power:
                node.lose_power()
            else:
                node.crash("killed")

    def _stop_one(self) -> None:
        """Cleanly: leaders move first."""
        node = self.random.choice(self.nodes)
        if self._may_crash(node):
            node.stop()
            self._restart_later(node)

    def _restart_cleanly(self, node: SimNode, life: Life) -> None:
        if node.life is not life or life.is_stopping:
            return
        if life.serves:
            node.stop()
            self._restart_later(node)
        else:
            self.loop.later(RESTART_CHECK_SECONDS, self._restart_cleanly, node, life)

    def _make_room(self, node: SimNode, life: Life) -> None:
        if not self._is_over:
            self._restart_cleanly(node, life)

    def _restart_later(self, node: SimNode) -> None:
        """As soon as its present life has ended, but not at once."""
        life = node.life

        def restart() -> None:
            if node.life is None:
                node.start()
            elif node.life is life and (life is node.crashing or life.is_stopping):
                self.loop.later(RESTART_CHECK_SECONDS, restart)

        self.loop.later(0.6 + self.random.choice((0.0, 0.5, 5.0, 10.0)), restart)

    def hold_data_loop(self) -> None:
        """Its data loop does not turn for a while; its control loop does."""
        node = self.random.choice(self.nodes)
        if node.life is not None:
            seconds = self.random.choice(HELD_SECONDS)
            self.loop.hold_data(node.life.process, seconds)
            self.referee.note(f"the data loop of node {node.id} is held for {seconds} s")

    def _pause(self) -> None:
        """A whole process does not run for a while, and does not know it."""
        node = self._pausing.choice(self.nodes)
        if node.life is not None:
            seconds = self._pausing.choice(PAUSED_SECONDS)
            self.loop.pause(node.life.process, seconds)
            self.referee.note(f"node {node.id} pauses for {seconds} s")

    def _slow_loop(self) -> None:
        """What its data loop does takes time, for the rest of its life."""
        node = self._pausing.choice(self.nodes)
        if node.life is not None:
            random = Random(self._pausing.getrandbits(64))
            chance, seconds = self._pausing.choice(SLOWNESS)
            node.life.process.slowness = Slowness(random, chance, seconds)
            self.referee.note(f"one callback in {1 / chance:.0f} on node {node.id} takes up to {seconds} s")

    # -- disks

    def _black_out(self) -> None:
        """Several nodes lose power at once, perhaps all; sometimes while their disks are slow, so much is unsynced."""
        count, is_slow = self._powers.randint(2, len(self.nodes)), self._powers.random() < 0.5
        for node in self._powers.sample(self.nodes, count):
            if node.life is not None:
                node.crashing = node.life
                node.life.threads.delay_max_s = SLOW_SECONDS if is_slow else node.life.threads.delay_max_s
                self.loop.later(SLOW_SECONDS if is_slow else 0.0, self._end, node, node.life, True)
                self._restart_later(node)

    def _lose_power_of_one(self) -> None:
        node = self.random.choice(self.nodes)
        if self._may_lose_data(node):
            node.power_lost, node.loses_power = True, True
            self._begin_crash(node, power=True)

    def _may_lose_data(self, node: SimNode) -> bool:
        """One replica at a time, and only while the others are whole: that is what min.insync.replicas=2 promises.

        Where every append is flushed before it counts (flush.messages=1), what was acknowledged is on the disks of as
        many: any number may lose power, also at once.
        """
        if self._world.all_durable:
            return node.life is not None
        others = [other for other in self.nodes if other is not node]
        return node.life is not None and not any(other.unclean or other.power_lost for other in others)

    def _fail_syncs(self) -> None:
        node = self.random.choice(self.nodes)
        if self._may_lose_data(node):
            assert node.life is not None
            self.referee.note(f"fsync fails on node {node.id}")
            node.power_lost, node.life.disk.fail_syncs, node.crashing = True, True, node.life
            self.loop.later(10.0, self._end, node, node.life, True)
            self.loop.later(10.0, self._restart_later, node)

    def _fill_disk(self) -> None:
        """One log dir of two goes offline, or the one with the metadata, and the node with it.

        As in Kafka, a stop without all log dirs is no clean one: the broker is not eligible until it is in sync again.
        """
        node = self.random.choice(self.nodes)
        if not self._may_crash(node):
            return
        where = MORE if self.random.random() < 0.75 else ROOT
        self.referee.note(f"{where} of node {node.id} is full")
        node.platter.full.add(where)
        node.unclean, node.crashing = True, node.life
        assert node.life is not None
        if where == ROOT:
            self.loop.later(FULL_SECONDS, self._end, node, node.life, False)
            self._restart_later(node)
        else:
            self.loop.later(FULL_SECONDS, self._make_room, node, node.life)

    def _slow_disk(self) -> None:
        node = self.random.choice(self.nodes)
        if node.life is not None:
            node.life.threads.delay_max_s = self.random.choice((0.01, 0.1, 0.5))
            self.referee.note(f"the disk of node {node.id} is slow")

    # -- the network

    def _partition(self) -> None:
        node = self.random.choice(self.nodes)
        others = [other for other in self.nodes if other is not node]
        chosen = others if self.random.random() < 0.6 else [self.random.choice(others)]
        one_way = self.random.random() < 0.3
        for other in chosen:
            self.network.cut.add((node.id, other.id))
            if not one_way:
                self.network.cut.add((other.id, node.id))
        self.referee.note(f"cut: {sorted(self.network.cut)}")

    def _heal_network(self) -> None:
        self.network.cut.clear()
        self.referee.note("the network heals")

    def _weather(self) -> None:
        self.network.drop = self.random.choice((0.0, 0.01, 0.1, 0.3))
        self.network.delay_max_s = self.random.choice((0.002, 0.02, 0.2))
        self.referee.note(f"drop {self.network.drop}, delay up to {self.network.delay_max_s}")
