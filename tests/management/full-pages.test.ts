// A page has as many rows as its limit while there are more: a client that pages by `offset` takes a shorter
// page for the last. A page that is impossible is rejected, with the remedy. Where only `next` continues, pages may end
// early.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EventCursor, EventView } from '#ports/events/event-queries.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { fieldOf } from '../support/fields-of.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { aChange, aGroup, anEventView, aPerson, created, newPersons } from '../support/values.ts'

const uuid = (last: number) => `11111111-1111-5111-8111-${String(last).padStart(12, '0')}`
const large = { text: 'x'.repeat(640 * 1024) }

/** Every row of a list as a connector reads it: by offset, until a page is shorter than its limit. */
async function stepThrough(api: ManagementApi, path: string, limit: number): Promise<unknown[]> {
  const rows: unknown[] = []
  for (let offset = 0; ; offset += limit) {
    const body = await api.get(`${path}limit=${limit}&offset=${offset}`)
    rows.push(...body.results)
    if (body.results.length < limit) return rows
  }
}

describe('a page of a list', () => {
  it('has the requested number of persons, groups or flags, however large they are', async t => {
    const api = await startManagement(t)
    const persons = Array.from({ length: 5 }, (_, index) => aPerson({ uuid: uuid(index), properties: large }))
    const groups = Array.from({ length: 5 }, (_, index) => aGroup({ key: `g${index}`, properties: large }))
    const groupTypes = [{ projectId: 1, name: 'company', index: 0 }]
    await api.commit({ persons: persons.map(created), groupTypes, groups: groups.map(created) })
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      const body = { key, filters: { groups: [], note: large.text } }
      await api.post('/api/projects/1/feature_flags/?skip_validation=true', body)
    }
    for (const list of ['persons/?', 'groups/?group_type_index=0&', 'feature_flags/?'])
      assert.equal((await stepThrough(api, `/api/projects/1/${list}`, 2)).length, 5, list)
  })

  it('of a flag search runs the search once, however many reads the page takes', async t => {
    const calls: string[] = []
    const api = await startManagement(t, {
      before: {
        searchFlags: () => calls.push('search'),
        listFittingFlags: () => calls.push('read'),
      },
    })
    const path = '/api/projects/1/feature_flags/'
    for (const key of ['a', 'b', 'c', 'd']) {
      const body = { key, tags: [key < 'd' ? 'large' : 'other'], filters: { groups: [], note: large.text } }
      await api.post(`${path}?skip_validation=true`, body)
    }
    const body = await api.get(`${path}?tags=${encodeURIComponent('["large"]')}`)
    assert.deepEqual([body.count, body.results.map(({ key }: { key: string }) => key)], [3, ['c', 'b', 'a']])
    assert.deepEqual(calls, ['search', 'read', 'read', 'read'])
  })

  it('that would be too large is rejected with a limit that fits', async t => {
    const api = await startManagement(t)
    const persons = Array.from({ length: 14 }, (_, index) => aPerson({ uuid: uuid(index), properties: large }))
    await api.commit({ persons: persons.map(created) })
    const { status, body } = await api.call('GET', '/api/projects/1/persons/')
    assert.deepEqual([status, body.type, body.code, body.attr], [400, 'validation_error', 'invalid_input', 'limit'])
    const [, fitting] = /limit=(\d+) fits/.exec(body.detail) ?? []
    assert.equal(fitting, '12', 'twelve of 640 KiB are less than 8 MiB')
    assert.equal((await stepThrough(api, '/api/projects/1/persons/?', Number(fitting))).length, 14)
    const filters = { properties: { type: 'AND', values: [{ key: 'text', type: 'person', operator: 'is_set' }] } }
    const cohort = await api.post('/api/projects/1/cohorts/', { name: 'All', filters })
    const members = `/api/projects/1/cohorts/${cohort.id}/persons/`
    assert.equal((await api.call('GET', members)).body.attr, 'limit')
    const pages = await api.pages(`${members}?cursor=0`)
    assert.equal(new Set(pages.flat().map(({ id }) => id)).size, 14)
    assert.ok(pages.length === 2 && pages.flat().length === 14)
  })

  it('is complete, or rejected, if the list has only one page', async t => {
    const api = await startManagement(t)
    const path = '/api/projects/1/feature_flags/'
    const small = Array.from({ length: 25 }, (_, index) => `small-${index}`)
    const make = async (key: string, note: string) => {
      const body = { key, filters: { groups: [], note } }
      await api.post(`${path}?skip_validation=true`, body)
    }
    for (const key of small) await make(key, '')
    const all = await api.get(`${path}my_flags/`)
    const keys = all.map((each: { feature_flag: { key: string } }) => each.feature_flag.key)
    assert.deepEqual(keys.sort(), small.toSorted())
    for (let index = 0; index < 14; index++) await make(`large-${index}`, large.text)
    await api.refuses('GET', `${path}my_flags/`, ['', 'flag_keys', 'invalid_input'])
    assert.equal((await api.get(`${path}my_flags/?flag_keys=large-3&flag_keys=small-3`)).length, 2)
  })

  it('of large events ends before its limit, and `next` leads to the rest', async t => {
    let sliceRowsMax = 1
    const propertiesJson = JSON.stringify(large)
    const all = Array.from({ length: 20 }, (_, index) =>
      anEventView({ uuid: uuid(index), timestampMs: 1_000 - index, propertiesJson }),
    )
    const api = await startManagement(t, {
      events: {
        listEvents: async ({ after, limit }) => {
          const from = after === undefined ? 0 : 1_001 - after.timestampMs
          const events = all.slice(from, from + Math.min(limit, sliceRowsMax))
          const last = events.at(-1)!
          return { events, next: last === all.at(-1) ? null : { ...last, tieBreak: '0' } }
        },
      },
    })
    for (const [rowsMax, limit, lengths] of [
      [1, 100, [12, 8]],
      [5, 100, [10, 10]],
      [100, 100, [12, 8]],
      [100, 5, [5, 5, 5, 5]],
    ] as const) {
      sliceRowsMax = rowsMax
      const pages = await api.pages(`/api/projects/1/events/?limit=${limit}`)
      assert.deepEqual(fieldOf(pages, 'length'), lengths)
      assert.deepEqual(
        fieldOf(pages.flat(), 'id'),
        all.map(event => event.uuid),
      )
    }
  })

  it('of events is full, even if the store reads the events in shorter slices', async t => {
    const asked: (string | undefined)[] = []
    const event = (index: number) => ({ uuid: uuid(index), timestampMs: 1_000 - index }) as EventView
    const cursor = (index: number): EventCursor => ({ timestampMs: 1_000 - index, uuid: uuid(index), tieBreak: '0' })
    const api = await startManagement(t, {
      events: {
        listEvents: async ({ after }) => {
          asked.push(after?.uuid)
          const index = after === undefined ? 0 : 1_001 - after.timestampMs
          return { events: [anEventView(event(index))], next: index === 4 ? null : cursor(index) }
        },
      },
    })
    const pages = (await api.pages('/api/projects/1/events/?limit=3')).map(page => fieldOf(page, 'id'))
    assert.deepEqual(pages, [[0, 1, 2].map(uuid), [3, 4].map(uuid)])
    assert.deepEqual(
      asked,
      [undefined, 0, 1, 2, 3].map(index => (index === undefined ? index : uuid(index))),
    )
  })

  it('of a cohort that takes too long to search is rejected, unless the request has a cursor', async t => {
    let advance = () => undefined as unknown
    const api = await startManagement(t, {
      before: { listPersonsAfter: () => advance() },
    })
    const plans = Array.from({ length: 450 }, (_, index) => ({ plan: index % 300 === 0 ? 'pro' : 'free' }))
    await api.commit(newPersons(plans.map(properties => ({ properties }))))
    const isPro = { key: 'plan', type: 'person', operator: 'is_not', value: 'free' }
    const filters = { properties: { type: 'AND', values: [isPro] } }
    const cohort = await api.post('/api/projects/1/cohorts/', { name: 'Pro', filters })
    const path = `/api/projects/1/cohorts/${cohort.id}/persons/`
    assert.equal((await api.get(path)).results.length, 2, 'searched to the end while there is time')
    advance = () => api.clock.advance(11_000)
    await api.refuses('GET', path, ['', 'limit', undefined, 'cursor=0'])
    const pages = await api.pages(`${path}?cursor=0`)
    assert.deepEqual(fieldOf(pages, 'length'), [1, 1, 0])
  })

  it('of activity can also be requested by number', async t => {
    const api = await startManagement(t)
    await api.post('/api/projects/1/feature_flags/', { key: 'a' })
    for (const name of ['one', 'two', 'three']) await api.patch('/api/projects/1/feature_flags/a/', { name })
    for (const path of ['/api/projects/1/feature_flags/a/activity/', '/api/projects/1/feature_flags/activity/']) {
      const pages = [await api.get(`${path}?limit=3&page=1`), await api.get(`${path}?limit=3&page=2`)]
      const versions = pages.map(({ results }) => results.map((row: Row) => row.detail.version))
      assert.deepEqual(versions, [[4, 3, 2], [1]])
      assert.deepEqual(await api.pages(`${path}?limit=3&page=1`), fieldOf(pages, 'results'))
      await api.refuses('GET', path, ['page=2&offset=1', 'page'])
    }
  })

  it('of activity ends before its limit if changes are large, unless it is requested by number', async t => {
    const api = await startManagement(t)
    const path = '/api/projects/1/feature_flags/'
    const write = async (key: string, index: number) => {
      const filters = { groups: [], note: String(index).repeat(600_000) }
      if (index === 0) await api.post(`${path}?skip_validation=true`, { key, filters })
      else await api.patch(`${path}${key}/?skip_validation=true`, { filters })
    }
    for (let index = 0; index < 9; index++) await write('large', index)
    for (const list of ['large/activity/', 'activity/']) {
      const pages = await api.pages(`${path}${list}?limit=1000`)
      assert.deepEqual(fieldOf(pages, 'length'), [6, 3], list)
      const versions = pages.flat().map(({ detail }) => detail.version)
      assert.deepEqual(versions, [9, 8, 7, 6, 5, 4, 3, 2, 1], list)
      await api.refuses('GET', `${path}${list}`, ['limit=1000&page=1', 'limit', undefined, 'limit=6 fits'])
    }
  })

  it('of large versions of a flag is followed by the next without a gap', async t => {
    const api = await startManagement(t)
    const path = '/api/projects/1/feature_flags/'
    const filters = { groups: [], note: 'x'.repeat(600_000) }
    await api.post(`${path}?skip_validation=true`, { key: 'large', filters })
    for (const name of ['one', 'two', 'three']) await api.patch(`${path}large/`, { name })
    const versions = (await api.pages(`${path}large/versions/?limit=3`)).flat()
    assert.deepEqual(fieldOf(versions, 'version'), [4, 3, 2, 1])
    for (const list of ['large/activity/', 'activity/']) {
      const entries = (await api.pages(`${path}${list}?limit=3`)).flat()
      const told = entries.map(({ activity, detail }) => `${activity} ${detail.version}`)
      assert.deepEqual(told, ['updated 4', 'updated 3', 'updated 2', 'created 1'], list)
    }
  })
})

interface Row {
  readonly detail: { readonly version: number }
}

it('every list rejects a limit above its maximum instead of silently returning fewer rows', async t => {
  const api = await startManagement(t)
  const limited = api.routes.filter(
    ({ operation }) => 'limit' in operation.query && operation.success.contentType === 'application/json',
  )
  assert.ok(limited.length > 20)
  for (const { path, operation } of limited) {
    const maximum = (operation.query.limit!.schema as { maximum?: number }).maximum ?? 0
    assert.ok(maximum > 0, path)
    await api.refuses('GET', `${path.replaceAll(/:\w+/g, '1')}/`, [`limit=${maximum + 1}`, 'limit'])
  }
})

/** Behind a proxy that forwards one part of a site, `next` has to be a URL that the client can reach. */
const list = '/api/projects/?limit=1'
const query = `${list}&offset=1`

async function withTwoProjects(...options: Parameters<typeof startManagement>) {
  const api = await startManagement(...options)
  await api.post('/api/projects/', { name: 'Second' })
  const next = async (headers: Record<string, string> = {}) => (await api.call('GET', list, { headers })).body.next
  return { api, next }
}

describe('the URL of the next page', () => {
  it('has the host and the scheme of the request', async t => {
    const { api, next } = await withTwoProjects(t)
    assert.equal(await next(), api.url + query)
    assert.equal(await next({ 'x-forwarded-proto': 'https' }), api.url.replace('http:', 'https:') + query)
  })

  it('has the host and the prefix that a trusted proxy names', async t => {
    const { api, next } = await withTwoProjects(t)
    assert.equal(await next({ 'x-forwarded-prefix': '/pennon' }), `${api.url}/pennon${query}`)
    assert.equal(await next({ 'x-forwarded-prefix': '/a/b-c/, /other' }), `${api.url}/a/b-c${query}`)
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'shop.example',
      'x-forwarded-prefix': '/flags',
    }
    assert.equal(await next(forwarded), `https://shop.example/flags${query}`)
    for (const prefix of ['//evil.example', 'evil', '/a?b', '/a b', '/a/../b#', '/', '/<script>', '/'.repeat(40)])
      assert.equal(await next({ 'x-forwarded-prefix': prefix }), api.url + query, prefix)
    assert.equal(await next({ 'x-forwarded-host': 'evil.example/path' }), api.url + query)
  })

  it('ignores forwarding headers of untrusted senders', async t => {
    const { api, next } = await withTwoProjects(t, { trustedProxies: '10.0.0.0/8' })
    const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-prefix': '/evil' }
    assert.equal(await next(forwarded), api.url + query)
  })

  it('starts with PENNON_PUBLIC_URL, whatever the request says', async t => {
    const { next } = await withTwoProjects(t, { publicUrl: 'https://shop.example/flags' })
    assert.equal(await next(), `https://shop.example/flags${query}`)
    const forwarded = { 'x-forwarded-host': 'other.example', 'x-forwarded-prefix': '/other', host: 'third.example' }
    assert.equal(await next(forwarded), `https://shop.example/flags${query}`)
  })
})

// However long a list is, it takes a handful of store calls, or one call after the other. A call for each item at once
// would fill the store's queue, and other requests would be refused.

const bodies: Record<string, (index: number) => object> = {
  surveys: index => ({
    ...{ name: `S${index}`, type: 'popover', linked_flag_id: 1 },
    targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: index }] },
  }),
  early_access_feature: index => ({ name: `E${index}` }),
  experiments: index => ({ name: `X${index}`, feature_flag_key: `x${index}` }),
}

for (const [name, bodyOf] of Object.entries(bodies)) {
  it(`a list of ${name} is read from the state in a few calls, and each item has its own flags`, async t => {
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

it('the projects of a key that is limited to many projects are read from the state in one call', async t => {
  const calls: string[] = []
  const api = await startManagement(t, {
    before: { findProject: () => calls.push('findProject'), listProjects: () => calls.push('listProjects') },
  })
  const limited = await api.addKey(['*'], [...Array.from({ length: 50 }, (_, index) => index + 1)])
  calls.length = 0
  const body = await api.get('/api/projects/', limited)
  assert.equal(body.count, 1)
  assert.deepEqual(calls, ['listProjects'])
})

it('the organization lists all projects, even if their settings exceed one page', async t => {
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
