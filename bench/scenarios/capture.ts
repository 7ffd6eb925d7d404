// Measures capture: single events and batches, plain and gzipped, durable before the answer, beside Fastify parsing the
// same bodies.

import { loopHeldMs, movePinned, startBenchServer } from '../bench-server.ts'
import { batchJson, captureBody, cookielessBody, gzipped } from '../bodies.ts'
import { startFloor } from '../floor.ts'
import { httpRequest } from '../load-generator.ts'
import { load, measured } from '../processes.ts'
import { micros, print } from '../report.ts'

export interface CaptureCase {
  readonly name: string
  readonly requests: readonly Buffer[]
  readonly connections: number
  readonly aim?: string
}

export async function capture(): Promise<void> {
  const server = await startBenchServer()
  const floor = await startFloor()
  try {
    for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
    for (const { name, requests, connections, aim } of captureCases()) {
      const options = { connections, durationMs: 4_000, requests }
      const bare = await measured(floor.pid, { ...options, port: floor.port })
      const ours = await measured(server.pid, { ...options, port: server.port })
      const rate = (ours.answerCount / ours.seconds) * 0.7
      const calmFloor = await load({ ...options, port: floor.port, rate })
      const { result: calm, heldMs } = await loopHeldMs(server, () => load({ ...options, port: server.port, rate }))
      print({
        name,
        value: `${micros(ours.cpuMicros)}, ${Math.round(ours.answerCount / ours.seconds)}/s, p50 ${calm.p50.toFixed(1)} p99 ${calm.p99.toFixed(1)} ms (floor ${calmFloor.p99.toFixed(1)}), loop held ≤ ${heldMs.toFixed(0)} ms`,
        floor: micros(bare.cpuMicros),
        ratio: bare.cpuMicros / ours.cpuMicros,
        ...(aim === undefined ? {} : { aim }),
      })
      if (ours.failureCount > 0) console.log(`  ${ours.failureCount} answers were not 200`)
    }
  } finally {
    floor.stop()
    await server.stop()
  }
}

export function captureCases(): readonly CaptureCase[] {
  return [
    { ...singleCase(), aim: '≥ 0.5, p50 ≤ 3 ms at 70 %' },
    { ...singleCase(cookielessBody), name: 'capture, single, cookieless' },
    { ...batchCase(10, 'plain', cookielessBody), name: '/batch/ of 10, cookieless' },
    ...[10, 100, 1_000].flatMap(size => [batchCase(size, 'plain'), batchCase(size, 'gzipped')]),
  ]
}

export function singleCase(event?: typeof cookielessBody): CaptureCase {
  const requests = Array.from({ length: 500 }, (_, index) => httpRequest('/capture/', captureBody(10 * index, event)))
  return { name: 'capture, single', requests, connections: 64 }
}

export function batchCase(size: number, form: 'plain' | 'gzipped', event?: typeof cookielessBody): CaptureCase {
  const requests = Array.from({ length: 20 }, (_, index) => {
    const body = batchJson(index * size, size, event)
    if (form === 'plain') return httpRequest('/batch/', body)
    return httpRequest('/batch/', gzipped(body), { 'content-encoding': 'gzip' })
  })
  const isAimedAt = size === 100 && form === 'gzipped'
  return { name: `/batch/ of ${size}, ${form}`, requests, connections: 16, ...(isAimedAt && { aim: '≥ 0.5' }) }
}
