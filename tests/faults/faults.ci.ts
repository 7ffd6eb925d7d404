import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { type CheckedLoad, findFaults, nothingFound, patientTarget, startCheckedLoad } from './checked-load.ts'
import { flagOfScene, killEngine, lockLog, lockState, settle, stopWorker } from './fault-scenarios.ts'

describe('an instance under load', () => {
  let pennon: Pennon
  let load: CheckedLoad

  before(async () => {
    pennon = await startPennon({ settings: { PENNON_LOG_LEVEL: 'silent' } })
    await pennon.api('POST', '/api/projects/@current/feature_flags/', flagOfScene)
    load = startCheckedLoad(() => patientTarget(pennon), { pauseMs: 30 })
  })
  after(async () => {
    load?.abandon()
    await pennon?.stop()
  })

  const faults = {
    'whose worker is stopped': () => stopWorker({ pennon, load }, 3),
    'whose event store is killed repeatedly': () => killEngine({ pennon, load }, 2),
    'whose state is locked by another process': () => lockState({ pennon, load }, 3),
    'whose log accepts nothing': () => lockLog({ pennon, load }, 6),
  }
  for (const [name, fault] of Object.entries(faults))
    it(`${name} serves flags, and recovers by itself`, async () => {
      await fault()
      await settle({ pennon, load })
    })

  it('has each event stored once after all faults, with persons as of the last event and correct totals', async () => {
    assert.deepEqual(await findFaults(patientTarget(pennon), [await load.stop()]), nothingFound)
  })
})
