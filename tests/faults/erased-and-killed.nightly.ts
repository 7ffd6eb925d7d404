// A whole instance is killed (kill -9) repeatedly after persons were erased through its API. In the end the erasures
// are complete, no trace of the persons is left, all others are unchanged, and no loss of rows is reported.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const rounds = 4
const persons = '/api/projects/@current/persons'

it('an erasure completes however often the instance is killed', async t => {
  const dataFolder = tempDir(t)
  let pennon = await start()
  async function start(): Promise<Pennon> {
    const started = await startPennonFor(t, { dataFolder, waitForProcessing: false })
    return started
  }
  const send = (...ids: readonly string[]) =>
    pennon.post('/batch/', {
      api_key: testProjectKey,
      batch: ids.map(id => ({ event: 'visit', distinct_id: id, properties: { $set: { name: id } } })),
    })
  const idsOfEvents = async () => {
    const page = await pennon.api<{ results: { distinct_id: string }[] }>(
      'GET',
      '/api/projects/@current/events/?limit=1000',
    )
    return page.results.map(({ distinct_id }) => distinct_id).toSorted()
  }

  for (let round = 1; round <= rounds; round++) {
    assert.equal((await send(`gone-${round}`, `stays-${round}`)).status, 200)
    await pennon.caughtUp()
    // Accepted before the erasure, and perhaps still unprocessed.
    assert.equal((await send(`gone-${round}`)).status, 200)
    const erased = await pennon.api<{ persons_deleted: number }>('POST', `${persons}/bulk_delete/`, {
      ...{ distinct_ids: [`gone-${round}`], delete_events: true },
    })
    assert.equal(erased.persons_deleted, 1)
    // Each round is killed at another step: from before the worker has seen the erasure until after it is complete.
    await sleep((round - 1) * 400)
    await pennon.killTree()
    pennon = await start()
  }
  await eventually(async () => {
    const { count } = await pennon.api<{ count: number }>('GET', `${persons}/deletion_status/?status=pending`)
    return count === 0
  })
  await pennon.caughtUp()
  const stays = Array.from({ length: rounds }, (_, index) => `stays-${index + 1}`)
  assert.deepEqual(await idsOfEvents(), stays)
  const listed = await pennon.api<{ results: { distinct_ids: string[] }[] }>('GET', `${persons}/`)
  assert.deepEqual(listed.results.flatMap(({ distinct_ids }) => distinct_ids).toSorted(), stays)

  // The same id is used again.
  assert.equal((await send('gone-1')).status, 200)
  await pennon.caughtUp()
  assert.deepEqual(await idsOfEvents(), ['gone-1', ...stays])
  assert.equal((await pennon.readiness()).events, 'ok')
  assert.doesNotMatch(pennon.output(), /the event store has changed|missing from the event store/)
})
