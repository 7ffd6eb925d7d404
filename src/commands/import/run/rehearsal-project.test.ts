import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eventsOf, memoryStagedJob } from '../../../../tests/support/memory-staged-job.ts'
import { createSampledJob } from './rehearsal-project.ts'

it('a rehearsal project gets all groups, and all events of some persons', async () => {
  const job = memoryStagedJob({ seed: 7, days: 3, recordsPerDay: 400 })
  const sample = await eventsOf(createSampledJob(job, 0.2, id => id))
  const chosen = new Set(sample.filter(({ event }) => event !== '$groupidentify').map(({ distinctId }) => distinctId))
  const all = await eventsOf(job)
  assert.deepEqual(
    sample,
    all.filter(({ event, distinctId }) => event === '$groupidentify' || chosen.has(distinctId)),
  )
  const share = chosen.size / new Set(all.map(({ distinctId }) => distinctId)).size
  assert.ok(share > 0.05 && share < 0.5, String(share))
})
