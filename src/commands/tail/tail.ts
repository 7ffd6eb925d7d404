// `pennon tail`: prints a line for each event as it arrives, from the live view of a running instance. Reconnects by
// itself when the instance restarts or the connection breaks.

import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '#config.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { warnOfOtherPort } from '../client/run-client.ts'
import { terminalOf } from '../client/terminal.ts'
import { refuse } from '../refuse.ts'
import { keepWatching } from './keep-watching.ts'
import { watchLiveView } from './live-view.ts'
import { type TailOptions, tailAddress } from './tail-address.ts'
import { jsonLineOf, lineOf } from './tail-lines.ts'
import { tailNotices } from './tail-notices.ts'

export type { TailOptions }

/** Three times the longest silence of an instance. */
const silentAfterMs = 45_000

/** Exits with code 2 and one line when retrying is pointless, and with 0 when its output is no longer read. */
export async function tail(options: TailOptions): Promise<void> {
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  const { personalKey } = read.value
  const address = tailAddress(options, read.value)
  if (!address.ok) refuse(address.error)
  warnOfOtherPort(options.host, read.value)
  if (personalKey === null) refuse('Set PENNON_PERSONAL_KEY to a personal API key with the scope query:read.')
  const { instance, view } = address.value
  const notices = tailNotices({ instance, rejected: options.rejected, nowMs: Date.now })
  const monotonicNowMs = () => performance.now()
  endWithOutput()
  let hasHead = false
  const { reason, wasOpen } = await keepWatching({
    watch: onReady =>
      watchLiveView({
        url: view,
        personalKey,
        silentAfterMs,
        monotonicNowMs,
        onMessage: (kind, data) => {
          if (kind === 'ready') onReady()
          // Every reconnected view sends it again; the table has one head.
          if (kind === 'ready' && options.json !== true && hasHead) return
          if (kind === 'ready') hasHead = true
          const line = options.json === true ? jsonLineOf(kind, data) : lineOf(kind, data, terminalOf(process.stdout))
          process.stdout.write(`${line}\n`)
        },
      }),
    onLost: reason => say(notices.lost(reason)),
    onBack: afterMs => say(notices.back(afterMs)),
    sleep: ms => sleep(ms),
    random: Math.random,
    monotonicNowMs,
  })
  refuse(wasOpen ? notices.ended(reason) : notices.unopened(reason))
}

/** To stderr, since the events on stdout may be piped into another program. */
function say(line: string): void {
  process.stderr.write(`pennon: ${line}\n`)
}
