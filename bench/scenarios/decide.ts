// Flag evaluation: 20 and 350 flags, with a stored person, beside Fastify answering the same bytes.

import { loopHeldMs, movePinned, projectKey, startBenchServer } from '../bench-server.ts'
import { decideBody, eventBody, flagBody, storedPersonProperties } from '../bodies.ts'
import { startFloor } from '../floor.ts'
import { httpRequest } from '../load-generator.ts'
import { load, measured } from '../processes.ts'
import { micros, print } from '../report.ts'

const steady = { connections: 16, durationMs: 4_000, staysAwake: true }

export async function decide(): Promise<void> {
  const server = await startBenchServer()
  const floor = await startFloor()
  try {
    for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
    await fetch(`${server.url}/capture/`, {
      method: 'POST',
      body: JSON.stringify({
        api_key: projectKey,
        ...eventBody(1),
        event: '$set',
        distinct_id: 'ada',
        properties: { $set: storedPersonProperties },
      }),
    })
    await server.caughtUp()
    let created = 0
    let v3Of20 = 0
    for (const flagCount of [20, 350]) {
      for (; created < flagCount; created++)
        await server.api('POST', '/api/projects/@current/feature_flags/', flagBody(created))
      for (const [path, shape, aim] of [
        ['/decide?v=3', 'v=3', flagCount === 20 ? '≥ 0.6' : '≥ 0.25'],
        ['/flags?v=2', 'v=2', flagCount === 20 ? '≥ 0.6' : ''],
      ] as const) {
        const answer = await (await fetch(server.url + path, { method: 'POST', body: decideBody })).json()
        const pathname = path.split('?')[0]!
        await floor.setAnswers({ [pathname]: answer })
        const request = httpRequest(path, decideBody)
        const bare = await measured(floor.pid, { ...steady, port: floor.port, requests: [request] })
        const ours = await measured(server.pid, { ...steady, port: server.port, requests: [request] })
        const rate = (ours.answerCount / ours.seconds) * 0.7
        const calmFloor = await load({ ...steady, port: floor.port, requests: [request], rate })
        const { result: calm, heldMs } = await loopHeldMs(server, () =>
          load({ ...steady, port: server.port, requests: [request], rate }),
        )
        print({
          name: `${flagCount} flags, ${shape}, stored person`,
          value: `${micros(ours.cpuMicros)}, ${Math.round(ours.answerCount / ours.seconds)}/s, p99 ${calm.p99.toFixed(1)} ms (floor ${calmFloor.p99.toFixed(1)}), loop held ≤ ${heldMs.toFixed(0)} ms`,
          floor: micros(bare.cpuMicros),
          ratio: bare.cpuMicros / ours.cpuMicros,
          aim: `${aim}${shape === 'v=3' && flagCount === 20 ? ', p99 ≤ 5 ms at 70 %' : ''}`,
        })
        if (ours.failureCount > 0) console.log(`  ${ours.failureCount} answers were not 200`)
        if (shape === 'v=3' && flagCount === 20) v3Of20 = ours.cpuMicros
        if (shape === 'v=3' && flagCount === 350)
          print({
            name: 'per added flag, v=3',
            value: `${((ours.cpuMicros - v3Of20) / 330).toFixed(3)} µs`,
            aim: '≤ 0.4 µs',
          })
      }
    }
  } finally {
    floor.stop()
    await server.stop()
  }
}
