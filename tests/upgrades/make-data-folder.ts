// `node tests/upgrades/make-data-folder.ts FOLDER` makes the data folder of an instance that was killed while events
// waited, with data of every kind. `tar czf baseline.tar.gz --exclude ./lock -C FOLDER .` packs it. It was made once
// with the first schema: each migration is tested on that folder (`baseline-folder.ci.ts`), so do not make it again.

import assert from 'node:assert/strict'
import { eventually } from '../support/eventually.ts'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { baselineEvents } from './baseline-events.ts'

const [folder] = process.argv.slice(2)
assert.ok(folder, 'which folder?')
const pennon = await startPennon({ dataFolder: folder })
const api = '/api/projects/@current'
await pennon.api('POST', `${api}/feature_flags/`, {
  key: 'for-pros',
  filters: { groups: [{ properties: [{ key: 'plan', value: 'pro', type: 'person' }], rollout_percentage: 100 }] },
})
await pennon.api('POST', `${api}/cohorts/`, {
  name: 'pros',
  filters: { properties: { type: 'AND', values: [{ type: 'person', key: 'plan', value: 'pro' }] } },
})
const send = async (body: object, headers: Record<string, string> = {}): Promise<number> =>
  (await pennon.post('/batch/', { api_key: testProjectKey, ...body }, headers)).status
const { processed, imported, ofJob, rejected, waiting, waitingImport } = baselineEvents
for (const event of processed) assert.equal(await send({ batch: [event] }), 200)
assert.equal(await send({ historical_migration: true, batch: imported }), 200)
assert.equal(await send({ batch: [rejected] }), 400)
const job = await pennon.api<{ id: number; number: number }>('POST', `${api}/import_jobs/`, {
  source: 'mixpanel',
  name: 'history',
})
assert.equal(await send({ historical_migration: true, batch: ofJob }, { 'x-import-job': String(job.id) }), 200)
await pennon.caughtUp()
await eventually(
  async () => (await pennon.api<{ rows: number }>('GET', `${api}/import_jobs/${job.number}/report/`)).rows === 1,
)
await eventually(async () => {
  const { results } = await pennon.api<{ results: object[] }>('GET', `${api}/rejected_events/`)
  return results.length === 1
})
process.kill(pennon.childPids().work!, 'SIGSTOP')
for (const event of waiting) assert.equal(await send({ batch: [event] }), 200)
assert.equal(await send({ historical_migration: true, batch: waitingImport }), 200)
await pennon.killTree()
process.exit(0)
