// Measures flag evaluation: 20 and 350 flags, with a stored person, beside Fastify answering the same bytes.

import type { Pennon } from '../../tests/support/pennon.ts'
import { movePinned, projectKey, startBenchServer } from '../bench-server.ts'
import { decideBody, eventBody, flagBody, storedPersonProperties } from '../bodies.ts'
import { flagsFigure } from '../flags-figure.ts'
import { startFloor } from '../floor.ts'
import { print } from '../report.ts'

export async function decide(): Promise<void> {
  const server = await startBenchServer()
  const floor = await startFloor()
  try {
    for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
    await storePerson(server)
    let created = 0
    const v3Micros: number[] = []
    for (const flagCount of [20, 350]) {
      for (; created < flagCount; created++)
        await server.api('POST', '/api/projects/@current/feature_flags/', flagBody(created))
      const name = `${flagCount} flags, stored person`
      const v3 = { name: `${name}, v=3`, path: '/decide?v=3', body: decideBody }
      const v2 = { name: `${name}, v=2`, path: '/flags?v=2', body: decideBody }
      if (flagCount === 20) {
        v3Micros.push(await flagsFigure(server, floor, { ...v3, aim: '≥ 0.6, p99 ≤ 5 ms at 70 %' }))
        await flagsFigure(server, floor, { ...v2, aim: '≥ 0.6' })
      } else {
        v3Micros.push(await flagsFigure(server, floor, { ...v3, aim: '≥ 0.25' }))
        await flagsFigure(server, floor, v2)
      }
    }
    const perFlag = (v3Micros[1]! - v3Micros[0]!) / 330
    print({ name: 'per added flag, v=3', value: `${perFlag.toFixed(3)} µs`, aim: '≤ 0.4 µs' })
  } finally {
    floor.stop()
    await server.stop()
  }
}

/** The person that `decideBody` asks for. */
export async function storePerson(server: Pennon): Promise<void> {
  await server.post('/capture/', {
    api_key: projectKey,
    ...eventBody(1),
    event: '$set',
    distinct_id: 'ada',
    properties: { $set: storedPersonProperties },
  })
  await server.caughtUp()
}
