// However long a list is, it takes a handful of store calls, or one call after the other. A call for each item at once
// would fill the store's queue, and other requests would be refused.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { startManagement } from '../support/management-api.ts'
import { aChange } from '../support/values.ts'

const bodies: Record<string, (index: number) => object> = {
  surveys: index => ({
    ...{ name: `S${index}`, type: 'popover', linked_flag_id: 1 },
    targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: index }] },
  }),
  early_access_feature: index => ({ name: `E${index}` }),
  experiments: index => ({ name: `X${index}`, feature_flag_key: `x${index}` }),
}

for (const [name, bodyOf] of Object.entries(bodies)) {
  it(`a list of ${name} is read in a few calls, each with its own flags`, async t => {
    let callCount = 0
    const counting = (store: ManagementStore) =>
      new Proxy(store, {
        get(target, method, receiver) {
          callCount++
          return Reflect.get(target, method, receiver)
        },
      })
    const api = await startManagement(t, { wrap: counting })
    await api.post('/api/projects/1/feature_flags/', { key: 'linked' })
    const path = `/api/projects/1/${name}/`
    const made = []
    for (let index = 0; index < 12; index++) made.push(await api.post(path, bodyOf(index)))
    callCount = 0
    const body = await api.get(path)
    assert.ok(callCount < 8, `${callCount} calls`)
    assert.deepEqual(body.results, made.reverse())
  })
}

it('the projects of a key that is limited to many projects are read in one call', async t => {
  const calls: string[] = []
  const watching = (store: ManagementStore): ManagementStore => ({
    ...store,
    findProject: id => {
      calls.push('findProject')
      return store.findProject(id)
    },
    listProjects: page => {
      calls.push('listProjects')
      return store.listProjects(page)
    },
  })
  const api = await startManagement(t, { wrap: watching })
  const limited = await api.addKey(['*'], [...Array.from({ length: 50 }, (_, index) => index + 1)])
  calls.length = 0
  const body = await api.get('/api/projects/', limited)
  assert.equal(body.count, 1)
  assert.deepEqual(calls, ['listProjects'])
})

it('the organization lists all projects, also where their settings exceed one page', async t => {
  const api = await startManagement(t)
  for (let count = 2; count <= 6; count++) {
    const created = await api.post('/api/projects/', { name: `p${count}` })
    const clientSettings = { text: 'x'.repeat(300_000) }
    assert.ok((await api.management.updateProject(created.id, { clientSettings }, aChange())).ok)
  }
  const slice = await api.management.listProjects({ limit: 100, offset: 0 })
  assert.ok(slice.results.length < 6, 'more than one read of the store')
  const body = await api.get('/api/organizations/@current/')
  assert.equal(body.projects.length, 6)
})
