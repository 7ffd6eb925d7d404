// A client with the public key of one project logs in all of its users at once. Users of another project who log in at
// that time must keep their flags: both projects' rows are in the same state, but projects take turns writing.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { startPostgres } from '../support/postgres.ts'
import { logger } from '../support/postgres-state.ts'
import { aMapping, aPerson, chunkChanges, created } from '../support/values.ts'

const floodCount = 12_000
const floodConnections = 120
const pipelined = 16
const probeCount = 60
const flagsOfFlood = 20

/** @throws AssertionError when users of the other project lose their flags. */
export async function runLogIns(): Promise<boolean> {
  const postgres = await startPostgres()
  const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-log-ins-'))
  try {
    const url = await postgres.createDatabase()
    await assertKept({ PENNON_DATA: dataFolder }, () => openSqliteChunkStore({ dataFolder }))
    await assertKept({ DATABASE_URL: url }, () => openPostgresChunkStore({ url, logger }))
    return true
  } finally {
    await postgres.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

async function assertKept(settings: Readonly<Record<string, string>>, openStore: () => ChunkStore): Promise<void> {
  const front = await startFront(settings)
  try {
    await floodAndProbe(front, openStore())
  } finally {
    await front.close()
  }
}

async function floodAndProbe(front: RunningFront, chunkStore: ChunkStore): Promise<void> {
  const flood = await makeProject(front, 'flood', flagsOfFlood)
  const quiet = await makeProject(front, 'quiet', 1)
  await storePersons(chunkStore, [
    ...Array.from({ length: floodCount }, (_, index) => ({ projectId: flood.id, id: `p${index}` })),
    ...Array.from({ length: probeCount }, (_, index) => ({ projectId: quiet.id, id: `v${index}` })),
  ])
  await chunkStore.close()

  let sentCount = 0
  let answeredCount = 0
  let isStopped = false
  const sendAll = async () => {
    while (!isStopped && sentCount < floodCount) {
      const ids = Array.from({ length: pipelined }, () => `p${sentCount++}`)
      const socket = connect(Number(new URL(front.url).port), '127.0.0.1')
      socket.on('error', () => {}) // the number of answers shows how many were cut off
      let missing = ids.length
      socket.on('data', data => {
        const count = data.toString('latin1').split('HTTP/1.1 ').length - 1
        answeredCount += count
        missing -= count
        if (missing <= 0) socket.destroy()
      })
      socket.write(ids.map(id => requestText(logInBody(flood.api_token, id))).join(''))
      await new Promise(resolve => socket.once('close', resolve))
    }
    isStopped = true
  }
  const senders = Array.from({ length: floodConnections }, sendAll)
  const failed: string[] = []
  let asked = 0
  for (; asked < probeCount && (asked < 5 || !isStopped); asked++) {
    const response = await fetch(`${front.url}/flags?v=2`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: logInBody(quiet.api_token, `v${asked}`),
    })
    const answer = await response.text()
    if (answer.includes('"errorsWhileComputingFlags":true'))
      failed.push(/"code":"(\w*error\w*)"/.exec(answer)?.[1] ?? answer)
  }
  isStopped = true
  await Promise.all(senders)
  const metrics = await (await fetch(`${front.url}/metrics`)).text()
  const dropped = [...metrics.matchAll(/^pennon_logins_dropped_total\{why="(\w+)"\} (\d+)$/gm)].map(
    ([, reason, count]) => `${reason} ${count}`,
  )
  console.log(
    `${answeredCount} log-ins of one project answered; of ${asked} of another ${failed.length} failed ${failed}; dropped: ${dropped}`,
  )
  assert.ok(answeredCount > 1_000, 'the flood arrived')
  assert.ok(failed.length * 4 <= asked, `${failed.length} of ${asked} failed`)
}

async function makeProject(front: RunningFront, name: string, flagCount: number) {
  const project = await front.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name })
  for (let index = 0; index < flagCount; index++)
    await front.api('POST', `/api/projects/${project.id}/feature_flags/`, {
      key: `half-${index}`,
      ensure_experience_continuity: true,
      filters: { groups: [{ rollout_percentage: 50 }] },
    })
  return project
}

async function storePersons(chunkStore: ChunkStore, ids: readonly { projectId: number; id: string }[]): Promise<void> {
  await chunkStore.claimPosition('main', 'test')
  const persons = ids.map(({ projectId, id }, index) => {
    const uuid = `${String(index).padStart(8, '0')}-1111-5111-8111-111111111111`
    return { id, person: aPerson({ projectId, uuid }) }
  })
  const changes = chunkChanges({
    persons: persons.map(({ person }) => created(person)),
    mappings: persons.map(({ id, person }) => created(aMapping(person, id))),
  })
  const position = { stream: 'main', ownerId: 'test', offset: 1, committedAtMs: 0 } as const
  assert.equal(await chunkStore.commitChunk(changes, position), 'committed')
}

function logInBody(token: string, distinctId: string): string {
  return JSON.stringify({ token, distinct_id: distinctId, $anon_distinct_id: 'anonymous' })
}

function requestText(body: string): string {
  const head = `POST /flags?v=2 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  return `${head}\r\n\r\n${body}`
}
