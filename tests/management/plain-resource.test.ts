// A resource that decides nothing needs a declaration, a table and one line of routes. The product has none yet, so the
// test declares one.

import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { openStateForWriting } from '#adapters/sqlite/open-sqlite.ts'
import {
  authorField,
  choiceField,
  instantField,
  instantSchema,
  integerField,
  membersField,
  nullable,
  type Resource,
  textField,
} from '#core/resource.ts'
import { type ResourceName, resources } from '#core/resources/resources.ts'
import { createBaseUrl } from '#http/management/kit/base-url.ts'
import { resourceRoutes } from '#http/management/kit/resource-routes.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const noteResource: Resource = {
  table: 'note',
  required: ['content'],
  keepsRevision: true,
  fields: {
    id: integerField('id'),
    projectId: integerField('project_id', { isShown: false }),
    name: textField('content', { schema: { type: 'string', maxLength: 20 } }),
    about: membersField('about', { link: { schema: { type: 'string' } }, tags: { schema: {}, shown: [] } }),
    happenedAtMs: nullable(instantField('happened_at', { schema: instantSchema })),
    scope: choiceField('scope', ['project', 'organization'], { initial: 'project' }),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    createdBy: nullable(authorField('created_by')),
  },
}
const name = 'note' as ResourceName
const notes = '/api/projects/1/notes/'

async function startNotes(t: TestContext): Promise<ManagementApi & { readonly waited: readonly number[] }> {
  Object.assign(resources, { [name]: noteResource })
  t.after(() => Reflect.deleteProperty(resources, name))
  let management: ManagementStore
  const waited: number[] = []
  const api = await startManagement(t, {
    wrap: (store, dataFolder) => {
      const state = openStateForWriting(dataFolder, 0)
      state.exec(`INSERT INTO id_sequence (name, last_id) VALUES ('note', 0);
        CREATE TABLE note (id INTEGER PRIMARY KEY, project_id INTEGER, content TEXT, about TEXT, happened_at INTEGER,
          scope TEXT, created_at INTEGER, updated_at INTEGER, created_by TEXT)`)
      state.close()
      management = store
      return store
    },
    // Read once the store is open.
    get otherRoutes() {
      const deps = {
        ...{ management, clock: fixedClock('2026-05-01T12:00:00Z'), newUuid: () => '', noteStateAway: () => {} },
        addressBase: createBaseUrl('', { isTrusted: () => false } as never),
        definitionsReady: async (revision: number) => void waited.push(revision),
      }
      return resourceRoutes(deps, { resource: name, tag: 'notes' })
    },
  })
  return { ...api, waited }
}

it('a resource without effect on evaluation is created, listed, changed and deleted as its declaration says', async t => {
  const api = await startNotes(t)
  const body = { content: 'Released', link: '/2.0', happened_at: '2026-04-30T10:00:00+02:00' }
  const created = await api.post(notes, body)
  const { created_by: _author, ...shown } = created
  const made = { created_at: '2026-05-01T12:00:00.000Z', updated_at: '2026-05-01T12:00:00.000Z' }
  const note = { id: 1, ...body, tags: [], scope: 'project', happened_at: '2026-04-30T08:00:00.000Z', ...made }
  assert.deepEqual(shown, note)
  await api.post(notes, { content: 'Later' })
  const { count, results } = await api.get(notes)
  assert.deepEqual([count, results.map((each: { id: number }) => each.id)], [2, [2, 1]])
  const other = await api.post('/api/projects/', { name: 'Second' })
  assert.equal((await api.get(notes.replace('/1/', `/${other.id}/`))).count, 0)
  const changed = await api.patch(`${notes}1/`, { tags: ['a'], scope: 'organization' })
  const { link, tags, scope } = changed
  assert.deepEqual([link, tags, scope], ['/2.0', ['a'], 'organization'])
  assert.deepEqual(await api.get(`${notes}1/`), changed)
  assert.equal((await api.call('DELETE', `${notes}1/`)).status, 204)
  assert.deepEqual((await api.call('GET', `${notes}1/`)).body.detail, 'The project has no note with this id.')
})

it('a resource without effect on evaluation refuses what its declaration does not allow', async t => {
  const api = await startNotes(t)
  await api.refuses(
    'POST',
    notes,
    [{ link: '/' }, 'content'],
    [{ content: 'x'.repeat(21) }, 'content'],
    [{ content: 'x', scope: 'world' }, 'scope'],
    [{ content: 'x', happened_at: 'once' }, 'happened_at'],
    [{ content: 'x', contents: 'x' }, 'contents'],
  )
  assert.equal((await api.get(notes)).count, 0)
})

it('a resource without effect on evaluation records its changes, but does not raise the revision', async t => {
  const api = await startNotes(t)
  const { revision: before } = await api.management.findLinks(1)
  await api.post(notes, { content: 'Released' })
  await api.patch(`${notes}1/`, { content: 'Withdrawn' })
  await api.call('DELETE', `${notes}1/`)
  assert.equal((await api.management.findLinks(1)).revision, before)
  assert.deepEqual(api.waited, [before, before, before])
  const { results } = await api.management.listActivity({ projectId: 1, kinds: [name], limit: 9 })
  assert.deepEqual(
    results.map(({ activity, itemId, itemName, changes }) => [activity, itemId, itemName, changes[0]?.path]),
    [
      ['deleted', '1', 'Withdrawn', 'content'],
      ['updated', '1', 'Withdrawn', 'content'],
      ['created', '1', 'Released', 'content'],
    ],
  )
})
