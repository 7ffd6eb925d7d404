// What `import_job` adds to answers, on the real engine: they are compared with those after publishing.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { toStagingProjectId } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { startManagement } from '../support/management-api.ts'
import { aMapping, aPerson, aStoredEvent, created, imported } from '../support/values.ts'
import { ada, bob, events, noon, today, trendsForTests } from './trends-for-tests.ts'

const { held, startTrends } = trendsForTests()

/** A project with an import job, whose rows are inserted as pending. */
async function startJob() {
  const trends = await startTrends()
  const { api, projectId } = trends
  const base = `/api/projects/${projectId}`
  const createJob = async () => {
    const { status, body } = await api.call('POST', `${base}/import_jobs/`, { body: { source: 'csv' } })
    assert.equal(status, 201)
    return body as { id: number; number: number }
  }
  const job = await createJob()
  const query = (body: object, name: unknown) =>
    api.call('POST', `${base}/query/${name === null ? '' : `?import_job=${name}`}`, { body: { query: body } })
  return {
    ...trends,
    ...{ api, base, job, query, createJob },
    insertPending: (...rows: Partial<StoredEvent>[]) => insertInto(job.number, projectId, rows),
    /** The data of each series. */
    async count(series: object[], name: unknown = null, more: object = {}): Promise<unknown[]> {
      const { status, text, body } = await query({ kind: 'TrendsQuery', dateRange: today, series, ...more }, name)
      assert.equal(status, 200, text)
      return body.results.map(({ label, data }: { label: string; data: number[] }) => [label, ...data])
    },
    async sql(text: string, name: unknown = null) {
      const { status, text: answer, body } = await query({ kind: 'HogQLQuery', query: text }, name)
      assert.equal(status, 200, answer)
      return body.results
    },
    async get(path: string) {
      const { status, text, body } = await api.call('GET', `${base}${path}`)
      assert.equal(status, 200, text)
      return body
    },
    /** As the worker does it. */
    async publish() {
      await held.store.publishJob(job.number)
      const published = { state: 'published', step: null, updatedAtMs: 2 } as const
      await api.management.updateImportJob(job.number, published, { states: ['planned'] }, null)
    },
  }
}

const insertInto = (job: number, projectId: number, rows: Partial<StoredEvent>[]) =>
  held.insert({
    pendingEvents: rows.map(row => imported(aStoredEvent({ projectId, timestampMs: noon, ...row }), job)),
  })

describe('a pending import job named by import_job', () => {
  it('is counted in trends exactly as it will be once published, and is not counted without import_job', async () => {
    const { insert, insertPending, projectId, job, count, publish } = await startJob()
    const live = { event: 'paid', timestampMs: noon, distinctId: 'ada', personId: ada }
    await insert(live, { ...live, propertiesJson: '{"plan":"free","n":1}' })
    const both = aStoredEvent({ projectId, ...live, propertiesJson: '{"plan":"live","n":2}' })
    await insert(both)
    await insertPending(
      { ...both, propertiesJson: '{"plan":"imported","n":100}' }, // the live row wins
      { event: 'paid', distinctId: 'moved', personId: bob, propertiesJson: '{"plan":"pro","n":5}' },
      { event: 'paid', distinctId: 'bob', personId: bob, propertiesJson: '{"plan":"pro","n":1.5}' },
      { event: 'seen', distinctId: 'bob', personId: bob, capturedAtMs: noon - 90 * 86_400_000 },
    )
    const repeated = aStoredEvent({ projectId, event: 'paid', timestampMs: noon, distinctId: 'bob', personId: bob })
    await insertPending(repeated, { ...repeated, capturedAtMs: noon - 40 * 86_400_000 })
    const overrides = [{ projectId, distinctId: 'moved', personId: ada, version: 1 }]
    await held.insert({ overrides })
    const questions: Parameters<typeof count>[] = [
      [[events('paid'), events('paid', { math: 'dau' }), events(null)]],
      [[events('paid', { math: 'sum', math_property: 'n' })]],
      [[events('paid')], null, { breakdownFilter: { breakdown: 'plan', breakdown_type: 'event' } }],
      [[events('paid')], null, { properties: [{ key: 'n', value: 1, operator: 'gt', type: 'event' }] }],
      [[events('paid')], null, { properties: [{ key: 'plan', value: '^p', operator: 'regex', type: 'event' }] }],
      [[events('paid')], null, { dateRange: { date_from: 'all' }, interval: 'month' }],
    ]
    const ask = async (name: unknown) => {
      const answers: unknown[] = []
      for (const [series, , more] of questions) answers.push(await count(series, name, more))
      return answers
    }
    const without = await ask(null)
    assert.deepEqual(without[0], [
      ['paid', 3],
      ['paid', 1],
      ['All events', 3],
    ])
    const seen = await ask(job.number)
    assert.deepEqual(seen[0], [
      ['paid', 6],
      ['paid', 2],
      ['All events', 7],
    ])
    assert.deepEqual(await ask(job.id), seen)
    assert.deepEqual(await ask(null), without)
    await publish()
    assert.deepEqual(await ask(null), seen)
  })

  it('replaces an event of an earlier import only if the job’s copy is the later one', async () => {
    const { projectId, job, sql, count, createJob, insertPending, publish } = await startJob()
    const [early, late] = [1, 2].map(n => aStoredEvent({ projectId, event: `e${n}`, timestampMs: noon }))
    const numbers: Record<string, number> = { other: 1, job: 2, another: 3 }
    const row = (event: StoredEvent, by: string) => {
      return { ...event, propertiesJson: JSON.stringify({ by, n: numbers[by] }) }
    }
    await held.insert({ events: [imported(row(early!, 'other'), 1)] })
    await insertPending(row(early!, 'job'), row(late!, 'job'))
    await new Promise(done => setTimeout(done, 5)) // versions are milliseconds
    await held.insert({ events: [imported(row(late!, 'other'), 1)] })
    // The same events in another pending job change nothing.
    const another = await createJob()
    await insertInto(another.number, projectId, [row(early!, 'another'), row(late!, 'another')])
    const text = "SELECT event, JSONExtractString(properties, 'by') FROM events ORDER BY event"
    const seen = await sql(text, job.number)
    assert.deepEqual(seen, [
      ['e1', 'job'],
      ['e2', 'other'],
    ])
    const series = [events('e1', { math: 'sum', math_property: 'n' })]
    assert.deepEqual(await count(series, job.number), [['e1', 2]])
    assert.deepEqual(await count(series, another.number), [['e1', 3]])
    await publish()
    assert.deepEqual(await sql(text), seen)
  })

  it('has events that can be listed page by page and found individually', async () => {
    const { projectId, job, base, get, api, insert, insertPending, publish } = await startJob()
    const at = (n: number) => ({
      timestampMs: noon + n * 1_000,
      distinctId: `d${n}`,
      personId: n % 2 === 0 ? ada : bob,
    })
    const rows = Array.from({ length: 7 }, (_, n) => aStoredEvent({ projectId, event: `e${n}`, ...at(n) }))
    const long = 'x'.repeat(1_500)
    await insert(rows[0]!, rows[3]!, rows[6]!)
    await insertPending(rows[1]!, rows[2]!, rows[4]!, rows[5]!, { ...at(0), event: long, uuid: rows[0]!.uuid })
    const list = async (query: string) => {
      const found: string[] = []
      for (let next: string | null = `/events/?limit=2${query}`; next !== null; ) {
        const page = await get(next)
        assert.ok(page.next === null || page.results.length === 2)
        found.push(...page.results.map((event: { event: string }) => event.event))
        next = page.next === null ? null : page.next.slice(page.next.indexOf('/events/'))
      }
      return found
    }
    const job7 = `&import_job=${job.number}`
    assert.deepEqual(await list(''), ['e6', 'e3', 'e0'])
    const all = await list(job7)
    assert.deepEqual(all.toSorted(), [...rows.map(({ event }) => event), long].sort())
    const filters = ['&event=e4', '&distinct_id=d1', `&person_id=${bob}`, `&uuid=${rows[2]!.uuid}`]
    const filtered = await Promise.all(filters.map(filter => list(filter + job7)))
    assert.deepEqual(filtered, [['e4'], ['e1'], ['e5', 'e3', 'e1'], ['e2']])
    const one = `${base}/events/${rows[4]!.uuid}/`
    assert.equal((await api.call('GET', one)).status, 404)
    const { body: shown } = await api.call('GET', `${one}?import_job=${job.number}`)
    assert.deepEqual([shown.event, shown.import_job_id, shown.distinct_id], ['e4', job.number, 'd4'])
    await publish()
    assert.deepEqual(await list(''), all)
    assert.deepEqual(await Promise.all(filters.map(list)), filtered)
    assert.deepEqual((await api.call('GET', one)).body, shown)
  })

  it('appears in SQL tables exactly as it will after publishing', async () => {
    const { projectId, job, sql, insert, insertPending, publish } = await startJob()
    const call = { event: '$feature_flag_called', flagCalled: 'nav', flagResponse: 'true' }
    await insert({ event: 'paid', distinctId: 'ada', personId: ada }, { ...call, distinctId: 'ada', personId: ada })
    await insertPending(
      { event: 'paid', distinctId: 'moved', personId: bob },
      { ...call, distinctId: 'bob', personId: bob },
    )
    const overrides = [{ projectId, distinctId: 'moved', personId: ada, version: 1 }]
    await held.insert({ overrides })
    const texts = [
      'SELECT event, distinct_id, person_id, properties, captured_at FROM events ORDER BY event, distinct_id',
      'SELECT count() FROM events AS a JOIN events AS b ON a.uuid = b.uuid',
      'WITH (SELECT max(timestamp) FROM events) AS last SELECT count() FROM events WHERE timestamp < last OR 1',
      'SELECT flag_key, flag_response, distinct_id, person_id, is_thinned FROM flag_calls ORDER BY distinct_id',
    ]
    const ask = (name: unknown) => Promise.all(texts.map(text => sql(text, name)))
    const [without, seen] = [await ask(null), await ask(job.number)]
    assert.deepEqual([without[1], seen[1], seen[3].length], [[[2]], [[4]], 2])
    assert.deepEqual(seen[0].at(-1).slice(0, 3), ['paid', 'moved', ada])
    assert.deepEqual(await ask(null), without)
    await publish()
    assert.deepEqual(await ask(null), seen)
  })

  it('shows persons as the job would change them, combined with the other persons of the project', async () => {
    const { api, base, projectId, job, get } = await startJob()
    const stagingId = toStagingProjectId(job.number)
    const mark = { kind: 'import_set' as const, timestampMs: 5, uuid: ada, importJobId: job.number }
    const staged = (distinctId: string, properties: JsonObject, createdAtMs: number) => {
      const marks = Object.fromEntries(Object.keys(properties).map(key => [key, mark]))
      const uuid = personUuid(projectId, distinctId)
      const person = aPerson({ projectId: stagingId, uuid, properties, marks, createdAtMs, isIdentified: true })
      return { persons: [created(person)], mappings: [created(aMapping(person, distinctId))] }
    }
    const person = aPerson({ projectId, uuid: ada, properties: { plan: 'live' }, createdAtMs: noon })
    const changes = [
      { persons: [created(person)], mappings: [created(aMapping(person, 'ada')), created(aMapping(person, 'a2'))] },
      staged('ada', { plan: 'imported', city: 'Oslo' }, noon - 1_000),
      staged('a2', { country: 'NO' }, noon - 2_000),
      staged('new', { city: 'Oslo' }, noon),
    ]
    await api.commit({
      persons: changes.flatMap(({ persons }) => persons),
      mappings: changes.flatMap(({ mappings }) => mappings),
    })
    const name = `import_job=${job.number}`
    const adaNow = { plan: 'live', city: 'Oslo', country: 'NO' }
    const [newUuid, hiddenUuid] = [personUuid(projectId, 'new'), personUuid(projectId, 'ada')]
    const list = async (query: string) => {
      const { results } = await get(`/persons/?${query}`)
      return results.map(({ uuid, properties }: { uuid: string; properties: object }) => [uuid, properties])
    }
    const [adaJoined, newShown] = [
      [ada, adaNow],
      [newUuid, { city: 'Oslo' }],
    ]
    assert.deepEqual(await list(''), [[ada, { plan: 'live' }]])
    for (const [query, expected] of [
      [name, [newShown, adaJoined]],
      [`${name}&distinct_id=ada`, [adaJoined]],
      [`${name}&distinct_id=new`, [newShown]],
      [`${name}&distinct_id=nobody`, []],
      [`${name}&uuid=${newUuid}`, [newShown]],
      [`${name}&search=a2`, [adaJoined]],
      [`${name}&properties=${encodeURIComponent('[{"key":"city","value":"Oslo"}]')}`, [newShown, adaJoined]],
      [`${name}&properties=${encodeURIComponent('[{"key":"plan","value":"imported"}]')}`, []],
      [`properties=${encodeURIComponent('[{"key":"city","value":"Oslo"}]')}`, []],
    ] as const)
      assert.deepEqual(await list(query), expected, query)
    const first = await get(`/persons/?${name}&limit=1`)
    const second = await get(first.next.slice(first.next.indexOf('/persons/')))
    assert.deepEqual(
      [...first.results, ...second.results].map(({ uuid }) => uuid),
      [newUuid, ada],
    )
    assert.deepEqual([second.next, first.next.includes(name)], [null, true])

    const shown = await get(`/persons/${ada}/?${name}`)
    assert.deepEqual(
      [shown.properties, shown.is_identified, shown.created_at],
      [adaNow, true, '2026-05-01T09:59:58.000Z'],
    )
    const { id } = await get(`/persons/${newUuid}/?${name}`)
    assert.equal((await get(`/persons/${id}/?${name}`)).uuid, newUuid)
    for (const path of [`/persons/${newUuid}/`, `/persons/${id}/`, `/persons/${hiddenUuid}/?${name}`])
      assert.equal((await api.call('GET', base + path)).status, 404, path)
    assert.equal((await api.call('GET', `${base}/persons/?uuid=${hiddenUuid}&${name}`)).status, 404)
    const offset = await api.call('GET', `${base}/persons/?${name}&offset=1`)
    assert.deepEqual([offset.status, offset.body.attr], [400, 'offset'])
  })

  it('is refused unless it is a pending job of the project that the key may read', async () => {
    const { api, base, job, query, createJob, insertPending } = await startJob()
    await insertPending({ event: 'paid' })
    const trend = { kind: 'TrendsQuery', dateRange: today, series: [events('paid')] }
    const ask = (path: string, key?: string) => api.call('GET', `${base}${path}`, key === undefined ? {} : { key })
    const refusal = async (call: Promise<{ status: number; body: { code: string; attr: string } }>) => {
      const { status, body } = await call
      return [status, body.code, body.attr]
    }
    const invalid: [name: string, code: string][] = [
      ['seven', 'invalid'],
      ['1.5', 'invalid'],
      ['', 'invalid_input'],
      ['0', 'invalid_input'],
      ['-7', 'invalid_input'],
      ['9007199254740993', 'invalid_input'],
      [`${job.number}&import_job=${job.number}`, 'invalid_input'],
    ]
    for (const [name, code] of invalid) {
      assert.deepEqual(await refusal(ask(`/events/?import_job=${name}`)), [400, code, 'import_job'], name)
      assert.deepEqual(await refusal(query(trend, name)), [400, code, 'import_job'], name)
    }
    const other = await api.call('POST', '/api/projects/', { body: { name: 'Other' } })
    const theirs = await api.call('POST', `/api/projects/${other.body.id}/import_jobs/`, { body: { source: 'csv' } })
    for (const name of [theirs.body.number, theirs.body.id, 999_999])
      assert.deepEqual(await refusal(ask(`/events/?import_job=${name}`)), [404, 'not_found', null])

    for (const [scope, path] of [
      ['query:read', '/events/'],
      ['query:read', `/events/${ada}/`],
      ['person:read', '/persons/'],
      ['person:read', `/persons/${ada}/`],
    ] as const) {
      const lacking = await ask(`${path}?import_job=${job.number}`, await api.addKey([scope]))
      assert.deepEqual([lacking.status, lacking.body.code], [403, 'permission_denied'], path)
      assert.match(lacking.body.detail, /'import_job:read'/)
      const reading = await ask(`${path}?import_job=${job.number}`, await api.addKey([scope, 'import_job:read']))
      assert.ok([200, 404].includes(reading.status), reading.text)
    }
    const key = await api.addKey(['query:read'])
    const path = `${base}/query/?import_job=${job.number}`
    assert.equal((await api.call('POST', path, { key, body: { query: trend } })).status, 403)

    const discarded = await createJob()
    await api.call('POST', `${base}/import_jobs/${discarded.number}/discard/`)
    const gone = await ask(`/events/?import_job=${discarded.number}`)
    assert.deepEqual([gone.status, gone.body.code, gone.body.attr], [409, 'import_job_not_pending', 'import_job'])
    const draining = { state: 'publishing', step: 'draining', updatedAtMs: 3 } as const
    await api.management.updateImportJob(job.number, draining, { states: ['planned'] }, null)
    assert.equal((await ask(`/events/?import_job=${job.number}`)).body.results.length, 1)
    for (const [state, step, detail] of [
      ['publishing', 'links', /is being published/],
      ['published', null, /is published: its events are visible without import_job/],
    ] as const) {
      await api.management.updateImportJob(
        job.number,
        { state, step, updatedAtMs: 4 },
        { states: ['publishing'] },
        null,
      )
      const refused = await query(trend, job.number)
      assert.deepEqual([refused.status, refused.body.code], [409, 'import_job_not_pending'])
      assert.match(refused.body.detail, detail)
    }
  })

  it('is refused if it ceases to be pending during the query', async t => {
    const { api, base, job, insertPending } = await startJob()
    await insertPending({ event: 'paid' })
    const found = await api.management.findImportJob(job.number)
    const states = [found!, { ...found!, state: 'publishing' as const, step: 'rows' as const }]
    const findImportJob = async () => ({ ...states.shift()!, projectId: 1 })
    const racing = await startManagement(t, { events: held.store, wrap: store => ({ ...store, findImportJob }) })
    const answer = await racing.call('GET', `/api/projects/1/events/?import_job=${job.number}`)
    assert.deepEqual([answer.status, answer.body.code, states.length], [409, 'import_job_not_pending', 0])
    assert.equal((await api.call('GET', `${base}/events/?import_job=${job.number}`)).status, 200)
  })
})
