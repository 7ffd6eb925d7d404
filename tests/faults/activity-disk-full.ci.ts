// On a full disk, a change and its entry in the activity log are both stored or neither.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { PortError } from '#ports/port-error.ts'
import { change, written } from '../ports/management-harness.ts'
import { fillDisk, mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'
import { writeNewState } from '../support/state.ts'
import { aChange, aNewFlag, aNewProject } from '../support/values.ts'

it('a write for which the disk has no space leaves neither a change nor an activity entry', {
  skip: noSmallDisk(),
}, async t => {
  const disk = mountSmallDisk(24 * 1024 * 1024)
  t.after(disk.remove)
  await writeNewState(disk.path)
  const store = openSqliteManagementStore({ dataFolder: disk.path, access: 'write' })
  t.after(() => store.close())
  written(await store.createProject(aNewProject({}), aChange()))
  written(await store.createFlag(aNewFlag(), aChange()))
  const survey = { id: 's', projectId: 1, name: 'start', type: 'popover', content: {} } as const
  written(await store.createResource('survey', survey, {}, aChange()))

  const names = { survey: 'start', flag: aNewFlag().name }
  let refusedCount = 0
  /** Remembers the name if the write is acknowledged. */
  const write = async (kind: keyof typeof names, name: string, bytes: number) => {
    const text = 'x'.repeat(bytes)
    try {
      if (kind === 'flag') written(await change(store, 1, 1, { name, filters: { groups: [], text } }))
      else written(await store.updateResource('survey', 1, 's', { name, content: { text } }, {}, aChange()))
      names[kind] = name
    } catch (error) {
      assert.ok(error instanceof PortError && error.code === 'full', String(error))
      refusedCount++
    }
  }
  const check = async () => {
    const found = await store.findResource('survey', 1, 's')
    const flag = await store.findFlag(1, '1')
    assert.deepEqual({ survey: found?.name, flag: flag?.name }, names)
    const newest = async (kind: 'survey' | 'feature_flag') =>
      (await store.listActivity({ projectId: 1, kinds: [kind], limit: 1 })).results[0]!
    assert.equal((await newest('survey')).itemName, names.survey)
    assert.equal((await newest('feature_flag')).version, flag?.version)
  }
  for (let round = 0; round < 3; round++) {
    const freeSpace = fillDisk(disk.path)
    for (const bytes of [10, 5_000, 50_000, 500_000])
      for (const kind of ['survey', 'flag'] as const) {
        await write(kind, `${kind} ${round} ${bytes}`, bytes)
        await check()
      }
    freeSpace()
    for (const kind of ['survey', 'flag'] as const) await write(kind, `${kind} ${round}`, 5_000)
    assert.deepEqual(names, { survey: `survey ${round}`, flag: `flag ${round}` })
    await check()
  }
  assert.ok(refusedCount > 3, String(refusedCount))
})
