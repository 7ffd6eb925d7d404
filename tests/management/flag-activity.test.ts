import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/feature_flags/'

it('the activity of a project lists every change of its flags with its author and details, newest first', async t => {
  const api = await startManagement(t)
  await api.post(path, { key: 'a' })
  api.clock.advance(1_000)
  await api.post(path, { key: 'b', name: 'B' })
  api.clock.advance(1_000)
  await api.patch(`${path}a/`, { name: 'A' }, await api.addKey(['feature_flag:write']))
  api.clock.advance(1_000)
  await api.call('DELETE', `${path}b/`)
  const body = await api.get(`${path}activity/?limit=3`)
  assert.equal(body.count, 4)
  const told = body.results.map(
    (entry: { activity: string; user: { first_name: string }; detail: { name: string } }) => [
      entry.detail.name,
      entry.activity,
      entry.user.first_name,
    ],
  )
  assert.deepEqual(told, [
    ['b', 'deleted', '*'],
    ['a', 'updated', 'feature_flag:write'],
    ['b', 'created', '*'],
  ])
  assert.deepEqual(body.results[1].detail.changes, [
    { type: 'FeatureFlag', action: 'changed', field: 'name', path: 'name', before: '', after: 'A' },
  ])
  assert.deepEqual((await api.get(`${path}a/activity/?limit=1`)).results, [body.results[1]])
})

it('pages of large versions follow each other without a gap', async t => {
  const api = await startManagement(t)
  const filters = { groups: [], note: 'x'.repeat(600_000) }
  await api.post(`${path}?skip_validation=true`, { key: 'large', filters })
  for (const name of ['one', 'two', 'three']) await api.patch(`${path}large/`, { name })
  for (const list of ['large/versions/', 'large/activity/', 'activity/']) {
    const told: unknown[] = []
    for (let next: string | null = `${path}${list}?limit=3`; next !== null; ) {
      const body = await api.get(next.replace(/^https?:\/\/[^/]+/, ''))
      for (const entry of body.results) told.push([entry.version ?? entry.detail.version, entry.activity])
      next = body.next
    }
    const isActivity = list.endsWith('activity/')
    const wanted = [4, 3, 2, 1].map(version => [
      version,
      isActivity ? (version === 1 ? 'created' : 'updated') : undefined,
    ])
    assert.deepEqual(told, wanted, list)
  }
})
