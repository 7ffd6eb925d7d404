// Imports without a job that are refused, or whose project is gone.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventBytesMax } from '#core/capture/normalize-event.ts'
import { openSqliteState } from '../support/state.ts'
import { anImportedEvent } from '../support/values.ts'
import { importWorld } from '../support/world/import-world.ts'

describe('an import without a job', () => {
  it('counts an event that is too large in the implicit job of its day, like other rejects', async t => {
    const world = await importWorld(t, openSqliteState)
    await world.apply(anImportedEvent('e', 'a', 100, { text: 'x'.repeat(eventBytesMax) }))
    assert.deepEqual(
      [...world.events.rejected.values()].map(({ reason, importJobId }) => `${reason} ${importJobId}`),
      ['message_size_too_large 1'],
    )
    const [implicitJob] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
    assert.deepEqual(await world.notes(implicitJob!), { message_size_too_large: 1 })
  })

  it('is dropped if its project is deleted', async t => {
    const world = await importWorld(t, openSqliteState)
    await world.apply({ ...anImportedEvent('e', 'a', 100, {}), projectId: 99 })
    assert.equal(world.events.rows.size, 0)
  })
})
