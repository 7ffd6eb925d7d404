// Measures one line of an evaluation benchmark: CPU per answer at full speed beside the floor's, then p99 and the
// longest blocking of the event loop at 70 % of that rate.

import type { Pennon } from '../tests/support/pennon.ts'
import { loopHeldMs } from './bench-server.ts'
import type { Floor } from './floor.ts'
import { httpRequest } from './load-generator.ts'
import { load, measured } from './processes.ts'
import { micros, print } from './report.ts'

/** How flags are asked for. */
export const steady = { connections: 16, durationMs: 4_000, staysAwake: true }

export interface FlagsCase {
  readonly name: string
  /** For example `/decide?v=3`. */
  readonly path: string
  readonly body: Buffer
  readonly aim?: string
}

/** Prints the figure. @returns microseconds of CPU per answer. */
export async function flagsFigure(server: Pennon, floor: Floor, { name, path, body, aim }: FlagsCase): Promise<number> {
  const answer = await (await fetch(server.url + path, { method: 'POST', body })).json()
  await floor.setAnswers({ [path.split('?')[0]!]: answer })
  const requests = [httpRequest(path, body)]
  const bare = await measured(floor.pid, { ...steady, port: floor.port, requests })
  const ours = await measured(server.pid, { ...steady, port: server.port, requests })
  const rate = (ours.answerCount / ours.seconds) * 0.7
  const calmFloor = await load({ ...steady, port: floor.port, requests, rate })
  const { result: calm, heldMs } = await loopHeldMs(server, () =>
    load({ ...steady, port: server.port, requests, rate }),
  )
  const atRate = `p99 ${calm.p99.toFixed(1)} ms (floor ${calmFloor.p99.toFixed(1)}), loop held ≤ ${heldMs.toFixed(0)} ms`
  print({
    name,
    value: `${micros(ours.cpuMicros)}, ${Math.round(ours.answerCount / ours.seconds)}/s, ${atRate}`,
    floor: micros(bare.cpuMicros),
    ratio: bare.cpuMicros / ours.cpuMicros,
    ...(aim === undefined ? {} : { aim }),
  })
  if (ours.failureCount > 0) console.log(`  ${ours.failureCount} answers were not 200`)
  return ours.cpuMicros
}
