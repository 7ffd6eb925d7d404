// What becomes of imports without a job of their own that are refused, or whose project is gone.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventBytesMax } from '#core/capture/normalize-event.ts'
import { openSqliteState } from '../support/state.ts'
import { anImportedEvent } from '../support/values.ts'
import { importWorld } from '../support/world/import-world.ts'

describe('an import without a job', () => {
  it('keeps that it had none when it is too large, as other rejects of its day do', async t => {
    const world = await importWorld(t, openSqliteState)
    await world.apply(anImportedEvent('e', 'a', 100, { text: 'x'.repeat(eventBytesMax) }))
    assert.deepEqual(
      [...world.events.rejected.values()].map(({ reason, importJobId }) => `${reason} ${importJobId}`),
      ['message_size_too_large 1'],
    )
    const [implicitJob] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
    assert.deepEqual(await world.notes(implicitJob!), { message_size_too_large: 1 })
  })

  it('of a project that is gone is dropped', async t => {
    const world = await importWorld(t, openSqliteState)
    await world.apply({ ...anImportedEvent('e', 'a', 100, {}), projectId: 99 })
    assert.equal(world.events.rows.size, 0)
  })
})
