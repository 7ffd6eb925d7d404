// `node tests/upgrades/make-data-folder.ts FOLDER`: makes a data folder as left by an instance that was killed while
// events waited: some are processed, some of each lane are not. Run once with each version whose folders all later
// versions have to open; the packed result is stored next to this file.

import assert from 'node:assert/strict'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { waitingEvents } from './waiting-events.ts'

const [folder] = process.argv.slice(2)
assert.ok(folder, 'which folder?')
const pennon = await startPennon({ dataFolder: folder })
await pennon.api('POST', '/api/projects/@current/feature_flags/', {
  key: 'kept',
  filters: { groups: [{ properties: [{ key: 'plan', value: 'pro', type: 'person' }], rollout_percentage: 100 }] },
})
const send = async (body: object) =>
  assert.equal((await pennon.post('/batch/', { api_key: testProjectKey, ...body })).status, 200)
await send({
  batch: [
    { event: '$set', distinct_id: 'ada', properties: { $set: { plan: 'pro' } }, timestamp: '2026-11-01T10:00:00Z' },
  ],
})
await send({ batch: [{ event: 'processed', distinct_id: 'ada', timestamp: '2026-11-01T10:00:01Z' }] })
await send({
  historical_migration: true,
  batch: [{ event: 'imported', distinct_id: 'ada', timestamp: '2025-01-01T00:00:00Z' }],
})
await pennon.caughtUp()
process.kill(pennon.childPids().work!, 'SIGSTOP')
const { live, historical } = waitingEvents
for (const event of live) await send({ batch: [event] })
await send({ historical_migration: true, batch: historical })
await pennon.killTree()
process.exit(0)
