// Compares what two servers take per answer. Both run on the same core and are asked in turns of a tenth of a second, so that
// other work on the machine affects both alike.

import { processCpuMs } from '../tests/support/cpu-time.ts'
import type { Pennon } from '../tests/support/pennon.ts'
import { movePinned } from './bench-server.ts'
import type { LoadOptions } from './load-generator.ts'
import { load } from './processes.ts'

/** What is asked of a server, again and again. */
export type Asked = Pick<LoadOptions, 'requests' | 'connections' | 'expectedStatus'>

/** CPU per answer of two servers in one round, µs. */
export interface Pair {
  readonly own: number
  readonly other: number
}

export interface TwoServers {
  readonly own: Pennon
  readonly other: Pennon
  /** Which of both started first and has the first turn. */
  readonly isOtherFirst: boolean
}

const settlingMs = 3_000
const measuredMs = 6_000
/** Long enough that waking and sleeping cost nothing, short enough that both meet the same machine. */
const turnMs = 100

/** Starts both, in the order that is this round's, because the server that starts first takes some 3 % more. */
export async function startTwo(
  round: number,
  start: { readonly own: () => Promise<Pennon>; readonly other: () => Promise<Pennon> },
): Promise<TwoServers> {
  const isOtherFirst = round % 2 === 0
  const early = await (isOtherFirst ? start.other() : start.own())
  const late = await (isOtherFirst ? start.own() : start.other())
  for (const server of [early, late]) for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
  return isOtherFirst ? { own: late, other: early, isOtherFirst } : { own: early, other: late, isOtherFirst }
}

/** Prepares what is asked of each server, and asks it. */
export async function askInterleaved(
  { own, other, isOtherFirst }: TwoServers,
  prepare: { readonly own: (server: Pennon) => Promise<Asked>; readonly other: (server: Pennon) => Promise<Asked> },
): Promise<Pair> {
  // The order changes with the round. When two servers of one tree each stored 100,000 persons, the first to do so took 35 %
  // more CPU afterwards, because the other had just run its code and had its persons in the caches.
  const early = isOtherFirst ? null : await prepare.other(other)
  const asked = { own: await prepare.own(own), other: early ?? (await prepare.other(other)) }
  const both = (durationMs: number) =>
    Promise.all([
      microsPerAnswer(own, { ...asked.own, durationMs, turn: { ms: turnMs, isSecond: isOtherFirst } }),
      microsPerAnswer(other, { ...asked.other, durationMs, turn: { ms: turnMs, isSecond: !isOtherFirst } }),
    ])
  // A worker that is catching up slows the load down, which shares its core. Requests then arrive one by one, and each of
  // them costs the server more.
  await Promise.all([own.caughtUp(), other.caughtUp()])
  await both(settlingMs)
  const [ownMicros, otherMicros] = await both(measuredMs)
  return { own: ownMicros, other: otherMicros }
}

/** The logarithm of how many times as much the one takes, and its standard error; null for fewer than four rounds. */
export function ratioOf(pairs: readonly Pair[]): { readonly log: number; readonly standardError: number | null } {
  const ratios = pairs.map(({ own, other }) => Math.log(own / other))
  const log = mean(ratios)
  // Each sample is a pair of rounds, so that it contains both orders in which the servers can start.
  const samples = Array.from({ length: ratios.length >> 1 }, (_, pair) => mean(ratios.slice(2 * pair, 2 * pair + 2)))
  if (samples.length < 2) return { log, standardError: null }
  const center = mean(samples)
  const variance = samples.reduce((sum, ratio) => sum + (ratio - center) ** 2, 0) / (samples.length - 1)
  return { log, standardError: Math.sqrt(variance / samples.length) }
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** @throws Error when an answer has another status than expected. */
export async function microsPerAnswer(server: Pennon, asked: Omit<LoadOptions, 'port'>): Promise<number> {
  const beforeMs = processCpuMs(server.pid)
  const { answerCount, failureCount } = await load({ ...asked, port: server.port, staysAwake: true })
  if (failureCount > 0) throw new Error(`${failureCount} of ${answerCount} answers had another status`)
  return ((processCpuMs(server.pid) - beforeMs) * 1_000) / answerCount
}
