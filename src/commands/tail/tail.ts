// `pennon tail`: prints a line for each event as it arrives, from the live view of a running instance. Reconnects by
// itself when the instance restarts or the connection breaks.

import { setTimeout as sleep } from 'node:timers/promises'
import { exitAfterOutput } from '../client/exit-after-output.ts'
import { warnOfOtherPort } from '../client/run-client.ts'
import { createTerminal } from '../client/terminal.ts'
import { readConfigOrRefuse, refuse } from '../refuse.ts'
import { notPennon, watchLiveView } from './live-view.ts'
import { buildTailAddress, type TailOptions } from './tail-address.ts'
import { formatJsonLine, formatLine } from './tail-lines.ts'
import { watchWithReconnects } from './watch-with-reconnects.ts'

export type { TailOptions }

/** Three times as long as a working instance is ever silent. */
const silentAfterMs = 45_000

/** Exits with code 2 and one line when retrying is pointless, and with 0 when its output is no longer read. */
export async function runTailCommand(options: TailOptions): Promise<void> {
  const config = readConfigOrRefuse()
  const { personalKey } = config
  const address = buildTailAddress(options, config)
  if (!address.ok) refuse(address.error)
  warnOfOtherPort(options.host, config)
  if (personalKey === null) refuse('Set PENNON_PERSONAL_KEY to a personal API key with the scope query:read.')
  const { instance, view } = address.value
  const notices = createTailNotices(instance, options.rejected, Date.now)
  const monotonicNowMs = () => performance.now()
  exitAfterOutput()
  let hasHead = false
  const { reason, wasOpen } = await watchWithReconnects({
    watch: onReady =>
      watchLiveView({
        url: view,
        personalKey,
        silentAfterMs,
        monotonicNowMs,
        onMessage: (kind, data) => {
          if (kind === 'ready') onReady()
          // Every reconnected view sends `ready` again, but the table has only one header.
          if (kind === 'ready' && options.json !== true && hasHead) return
          if (kind === 'ready') hasHead = true
          const line =
            options.json === true ? formatJsonLine(kind, data) : formatLine(kind, data, createTerminal(process.stdout))
          process.stdout.write(`${line}\n`)
        },
      }),
    onLost: reason => printToStderr(notices.lost(reason)),
    onBack: afterMs => printToStderr(notices.back(afterMs)),
    sleep: ms => sleep(ms),
    random: Math.random,
    monotonicNowMs,
  })
  refuse(wasOpen ? notices.ended(reason) : notices.unopened(reason))
}

/** Prints to stderr, since the events on stdout may be piped into another program. */
function printToStderr(line: string): void {
  process.stderr.write(`pennon: ${line}\n`)
}

const nothingThere = new RegExp(`ECONNREFUSED|ENOTFOUND|${notPennon}`)
const remedy = '. Set the URL of the instance with --host, or the PORT and HOST that it was started with.'

/**
 * The notices for people about the connection. They give the time at which a view broke, in the form of the event lines, so
 * that missed events can be looked up.
 * @param instance the address of the private API.
 * @param rejected whether the view shows rejects, which `/events/` does not list.
 */
export function createTailNotices(instance: string, rejected: boolean, nowMs: () => number) {
  const view = () => `${new Date(nowMs()).toISOString()} the live view of ${instance}`
  const meanwhile = rejected ? '/events/ and /rejected_events/' : '/events/'
  return {
    lost: (reason: string) =>
      `${view()} was interrupted: ${reason}. Reconnecting; to see what you missed, read ${meanwhile}`,
    back: (afterMs: number) => `${view()} reconnected after ${Math.ceil(afterMs / 1_000)} s`,
    ended: (reason: string) => `${view()} ended: ${reason}`,
    /** The notice for a view that never opened. It has no time, since the user reads it at once. */
    unopened: (reason: string) =>
      `The live view of ${instance} cannot be opened: ${reason}${nothingThere.test(reason) ? remedy : ''}`,
  }
}
