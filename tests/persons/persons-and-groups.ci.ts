// Persons and groups as users see them: events are sent to a running instance, and everything is read back through the
// private API. Each scenario has a separate project. A batch is one chunk, unless the worker splits it.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { personUuid } from '#core/persons/person-uuid.ts'
import { startPennon } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

interface PersonAnswer {
  readonly uuid: string
  readonly distinct_ids: readonly string[]
  readonly properties: Record<string, unknown>
  readonly created_at: string
  readonly is_identified: boolean
  readonly version: number
  readonly distinct_id_versions: Record<string, number>
}

interface EventAnswer {
  readonly uuid: string
  readonly event: string
  readonly distinct_id: string
  readonly person_id: string
  readonly person_mode: string
  readonly person: { readonly uuid: string }
  readonly properties: Record<string, unknown>
}

type Properties = Record<string, unknown>
interface Item {
  readonly event: string
  readonly properties: Properties
  readonly timestamp: string
  readonly uuid: string
}

const anon = (id: string) => ({ $anon_distinct_id: id })
const personless = { $process_person_profile: false }

/** A batch item; its seconds distinguish the times of a scenario. */
function item(event: string, distinctId: string, properties: Properties = {}, secondsAgo = 600): Item {
  const timestamp = new Date(Math.floor(Date.now() / 1000) * 1000 - secondsAgo * 1000).toISOString()
  return { event, properties: { distinct_id: distinctId, ...properties }, timestamp, uuid: randomUUID() }
}

describe('persons and groups, tested over HTTP', { concurrency: true }, () => {
  const pennon = startedForTests(startPennon)

  async function aProject() {
    const created = await pennon.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: 'Scenario' })
    const base = `/api/projects/${created.id}`
    const list = async <T>(path: string) => (await pennon.api<{ results: T[] }>('GET', `${base}${path}`)).results
    const project = {
      ...created,
      uuidOf: (distinctId: string) => personUuid(created.id, distinctId),
      /** Resolves when the events are processed. */
      async send(items: readonly Item[], envelope: Properties = {}): Promise<void> {
        const response = await pennon.post('/batch/', { api_key: created.api_token, batch: items, ...envelope })
        assert.equal(response.status, 200, await response.text())
        await pennon.caughtUp()
      },
      async post(path: string, body: Properties): Promise<void> {
        const response = await pennon.post(path, { api_key: created.api_token, ...body })
        assert.equal(response.status, 200, await response.text())
        await pennon.caughtUp()
      },
      list,
      persons: () => list<PersonAnswer>('/persons/'),
      async person(distinctId: string): Promise<PersonAnswer> {
        const found = await list<PersonAnswer>(`/persons/?distinct_id=${encodeURIComponent(distinctId)}`)
        assert.equal(found.length, 1, `a person of ${distinctId}`)
        return found[0]!
      },
      events: (query = '') => list<EventAnswer>(`/events/?${query}`),
      event: ({ uuid }: Item) => pennon.api<EventAnswer>('GET', `${base}/events/${uuid}/`),
      warnings: async () =>
        Object.fromEntries(
          (await list<{ type: string; count: number }>('/ingestion_warnings/')).map(row => [row.type, row.count]),
        ),
      groupTypes: () => pennon.api<{ group_type: string; group_type_index: number }[]>('GET', `${base}/groups_types/`),
      /** The response status for a person by uuid. */
      statusOf: (uuid: string) =>
        pennon.api('GET', `${base}/persons/${uuid}/`).then(
          () => 200,
          (cause: Error) => Number(/: (\d{3}) /.exec(cause.message)?.[1]),
        ),
      /** Asserts that every way to read events returns exactly these for the person. */
      async assertEventsOf(uuid: string, items: readonly Item[]): Promise<void> {
        const uuids = items.map(sent => sent.uuid).toSorted()
        const filtered = await project.events(`person_id=${uuid}`)
        assert.deepEqual(filtered.map(event => event.uuid).toSorted(), uuids, 'by person_id')
        const shown = (await project.events()).filter(event => event.person_id === uuid)
        assert.deepEqual(shown.map(event => event.uuid).toSorted(), uuids, 'among all')
        for (const event of [...filtered, ...shown])
          assert.deepEqual([event.person_id, event.person.uuid], [uuid, uuid])
        for (const sent of items) assert.equal((await project.event(sent)).person_id, uuid)
        const paged: string[] = []
        let next: string | null = `${base}/events/?person_id=${uuid}&limit=2`
        while (next !== null) {
          const page: { next: string | null; results: EventAnswer[] } = await pennon.api('GET', next)
          paged.push(...page.results.map(event => event.uuid))
          next = page.next === null ? null : page.next.slice(page.next.indexOf('/api/'))
        }
        assert.deepEqual(paged.toSorted(), uuids, 'page by page')
      },
    }
    return project
  }

  it('an event that is not personless creates a person, whose uuid is derived from the distinct id', async () => {
    const project = await aProject()
    const first = item('e', 'ada', { $set: { plan: 'free' }, $set_once: { plan: 'x', from: 'ad' } })
    await project.send([first, item('$identify', 'ada', { $set: { plan: 'pro' } })])
    const person = await project.person('ada')
    assert.deepEqual(
      [person.uuid, person.created_at, person.is_identified, person.version, person.distinct_id_versions],
      [project.uuidOf('ada'), first.timestamp, false, 1, { ada: 0 }],
      'an $identify without an anonymous id does not identify',
    )
    assert.deepEqual(person.properties, { plan: 'pro', from: 'ad', $creator_event_uuid: first.uuid })
  })

  it('linking an id to itself changes nothing', async () => {
    const project = await aProject()
    await project.send([item('$identify', 'ada', anon('ada')), item('$create_alias', 'ada', { alias: 'ada' })])
    const person = await project.person('ada')
    assert.deepEqual([person.is_identified, person.version, person.distinct_ids], [false, 0, ['ada']])
  })

  it('placeholder ids such as "anonymous" and "null" are never linked, however they are quoted', async () => {
    const project = await aProject()
    const anyCase = 'anonymous guest distinctid distinct_id id not_authenticated email undefined true false'.split(' ')
    const words = [
      ...anyCase.flatMap(word => [word, word.toUpperCase()]),
      ...['[object Object]', 'NaN', 'None', 'none', 'null', '0'],
    ]
    const illegal = [...words.flatMap(word => [word, `'${word}'`, `"${word}"`]), '', ' ', '\t', 'x'.repeat(401), 'a\0b']
    const asAnon = illegal.map(id => item('$identify', 'ada', anon(id)))
    const asAlias = illegal.filter(id => id !== '').map(id => item('$create_alias', 'bob', { alias: id }))
    const asSurvivor = words.map(id => item('$identify', id, anon('carl')))
    await project.send([...asAnon, item('$identify', 'ada', { $anon_distinct_id: null }), ...asAlias, ...asSurvivor])
    for (const id of ['ada', 'bob', 'null', 'Guest'.toUpperCase()]) {
      const person = await project.person(id)
      assert.deepEqual([person.distinct_ids, person.is_identified], [[id], false], id)
    }
    assert.deepEqual(await project.list('/persons/?distinct_id=carl'), [])
    assert.deepEqual(await project.warnings(), {
      cannot_merge_with_illegal_distinct_id: asAnon.length + 1 + asAlias.length + asSurvivor.length,
    })
    assert.equal((await project.events('limit=1000')).length, asAnon.length + 1 + asAlias.length + asSurvivor.length)
    await project.send(['nan', 'NULL', 'user', ' id '].map(id => item('$identify', 'ada', anon(id))))
    assert.deepEqual((await project.person('nan')).distinct_ids.toSorted(), [' id ', 'NULL', 'ada', 'nan', 'user'])
  })

  it('linking two new ids makes one person, which also gets earlier personless events', async () => {
    const project = await aProject()
    const [onlyOther, other, survivor] = ['o1', 'o2', 's2'].map(id => item('e', id, personless)) as [Item, Item, Item]
    await project.send([onlyOther, other, survivor])
    assert.deepEqual(await project.persons(), [])
    assert.equal((await project.event(other)).person_id, project.uuidOf('o2'))
    const links = [
      item('$identify', 's0', anon('o0')),
      item('$identify', 's1', anon('o1')),
      item('$identify', 's2', anon('o2')),
    ]
    await project.send(links)
    for (const [n, uuid, versions] of [
      [0, project.uuidOf('s0'), { o0: 0, s0: 0 }],
      [1, project.uuidOf('o1'), { o1: 0, s1: 0 }],
      [2, project.uuidOf('s2'), { o2: 1, s2: 0 }],
    ] as const) {
      const person = await project.person(`s${n}`)
      assert.deepEqual([person.uuid, person.distinct_id_versions, person.is_identified], [uuid, versions, true])
    }
    await project.assertEventsOf(project.uuidOf('o1'), [onlyOther, links[1]!])
    await project.assertEventsOf(project.uuidOf('s2'), [other, survivor, links[2]!])
    assert.deepEqual(await project.events(`person_id=${project.uuidOf('o2')}`), [])
  })

  for (const name of ['$identify', '$create_alias'] as const)
    it(`linking adds a new id to the known person: ${name}`, async () => {
      const project = await aProject()
      const link = (survivor: string, other: string) =>
        item(name, survivor, name === '$identify' ? anon(other) : { alias: other })
      const old = item('e', 'new2', personless)
      const known = [item('e', 'known1'), item('e', 'known2')] as const
      await project.send([...known, old])
      const links = [link('known1', 'new1'), link('new2', 'known2')] as const
      await project.send(links)
      const [one, two] = [await project.person('new1'), await project.person('new2')]
      assert.deepEqual([one.uuid, one.distinct_id_versions], [project.uuidOf('known1'), { known1: 0, new1: 0 }])
      assert.deepEqual([two.uuid, two.distinct_id_versions], [project.uuidOf('known2'), { known2: 0, new2: 1 }])
      assert.deepEqual([one.is_identified, two.is_identified, one.version], [true, true, 1])
      await project.assertEventsOf(project.uuidOf('known2'), [known[1], old, links[1]])
    })

  it("merging two persons keeps the survivor's values, the earlier creation time, and all events of both", async () => {
    const project = await aProject()
    const early = [item('e', 'anon', { $set: { a: 'anon', only: 1 } }, 900), item('e', 'anon', { $set: { n: 1 } }, 890)]
    const user = item('e', 'user', { $set: { a: 'user' } }, 800)
    await project.send([...early, user])
    const merged = item('$identify', 'user', { ...anon('anon'), $set: { added: true } })
    const late = item('e', 'anon')
    await project.send([merged, late])
    const person = await project.person('anon')
    const { $creator_event_uuid, ...properties } = person.properties
    assert.deepEqual(properties, { a: 'user', only: 1, n: 1, added: true })
    assert.deepEqual(
      [person.uuid, $creator_event_uuid, person.created_at, person.version, person.is_identified],
      [project.uuidOf('user'), user.uuid, early[0]!.timestamp, 2, true],
    )
    assert.deepEqual(person.distinct_id_versions, { anon: 1, user: 0 })
    const gone = project.uuidOf('anon')
    assert.deepEqual([await project.statusOf(gone), await project.statusOf(person.uuid)], [404, 200])
    await assert.rejects(project.list(`/persons/?uuid=${gone}`), /: 404 /)
    await project.assertEventsOf(person.uuid, [...early, user, merged, late])
    await project.assertEventsOf(gone, [])
  })

  it('a merge can be in the same batch as events before and after it', async () => {
    const project = await aProject()
    const items = [
      item('e', 'anon', { $set: { seen: 1 } }),
      item('e', 'user'),
      item('$identify', 'user', anon('anon')),
      item('e', 'anon', { $set: { seen: 2 } }),
      item('e', 'user'),
    ]
    await project.send(items)
    const person = await project.person('anon')
    assert.deepEqual([person.uuid, person.properties.seen], [project.uuidOf('user'), 2])
    await project.assertEventsOf(person.uuid, items)
  })

  it('an identified person is merged into another only by $merge_dangerously', async () => {
    const project = await aProject()
    const other = item('$identify', 'other', anon('x'))
    await project.send([other, item('e', 'user')])
    await project.send([item('$identify', 'user', anon('other')), item('$create_alias', 'user', { alias: 'x' })])
    const [survivor, kept] = [await project.person('user'), await project.person('other')]
    assert.notEqual(survivor.uuid, kept.uuid)
    assert.equal(survivor.is_identified, true, 'the survivor is identified even so')
    assert.deepEqual(await project.warnings(), { cannot_merge_already_identified: 2 })
    await project.send([item('$merge_dangerously', 'user', { alias: 'x' })])
    const merged = await project.person('other')
    assert.deepEqual([merged.uuid, merged.distinct_id_versions], [project.uuidOf('user'), { other: 1, user: 0, x: 1 }])
    assert.equal((await project.event(other)).person_id, merged.uuid)
  })

  for (const chunks of ['one batch', 'several'] as const)
    it(`a chain of merges leads to one person, in ${chunks}`, async () => {
      const project = await aProject()
      const items = [
        ...['a', 'b', 'c'].map(id => item('e', id, { $set: { [id]: 1 } })),
        item('$merge_dangerously', 'b', { alias: 'a' }),
        item('e', 'a'),
        item('$merge_dangerously', 'c', { alias: 'a' }),
        item('e', 'b'),
      ]
      if (chunks === 'one batch') await project.send(items)
      else for (const one of items) await project.send([one])
      const person = await project.person('a')
      const { $creator_event_uuid: _, ...properties } = person.properties
      assert.deepEqual([person.uuid, properties], [project.uuidOf('c'), { a: 1, b: 1, c: 1 }])
      assert.deepEqual(person.distinct_id_versions, { a: 2, b: 1, c: 0 })
      assert.equal((await project.persons()).length, 1)
      await project.assertEventsOf(person.uuid, items)
      for (const id of ['a', 'b']) await project.assertEventsOf(project.uuidOf(id), [])
    })

  it('a merge in an import applies to live events, and a live merge applies to imported events', async () => {
    const project = await aProject()
    const live = [item('e', 'device', { $set: { plan: 'live' } }), item('e', 'user')]
    await project.send(live)
    const year = 365 * 86_400
    const imported = [
      item('e', 'device', { $set: { plan: 'old', since: 2020 } }, year),
      item('$identify', 'user', anon('device'), year),
    ]
    await project.send(imported, { historical_migration: true })
    const merged = await project.person('device')
    assert.deepEqual(
      [merged.uuid, merged.properties.plan, merged.properties.since],
      [project.uuidOf('user'), 'live', 2020],
    )
    await project.assertEventsOf(merged.uuid, [...live, ...imported])
    const again = [item('e', 'account'), item('$merge_dangerously', 'account', { alias: 'user' })]
    await project.send(again)
    await project.assertEventsOf(project.uuidOf('account'), [...live, ...imported, ...again])
    assert.deepEqual((await project.person('device')).distinct_id_versions, { account: 0, device: 2, user: 1 })
  })

  it('an alias event may have its ids in the properties', async () => {
    const project = await aProject()
    await project.post('/capture/', {
      event: '$create_alias',
      distinct_id: null,
      properties: { distinct_id: 'user', alias: 'device' },
    })
    assert.deepEqual((await project.person('device')).distinct_ids.toSorted(), ['device', 'user'])
    await project.send([item('$create_alias', 'user', { alias: '' }), item('$create_alias', 'user', { alias: null })])
    assert.deepEqual((await project.person('user')).distinct_ids.length, 2, 'without an alias, it is an ordinary event')
  })

  it('events with invalid links or group keys are dropped, each with a warning', async () => {
    const project = await aProject()
    await project.send([
      item('$identify', 'ada', { $anon_distinct_id: 5 }),
      item('$identify', 'ada', { $anon_distinct_id: { toString: 1 } }),
      item('$create_alias', 'ada', { alias: ['x'] }),
      item('$merge_dangerously', 'ada', { alias: 1.5 }),
      item('$identify', 'ada', { ...anon('x'), ...personless }),
      item('$groupidentify', 'ada', { $group_type: 'company', $group_key: 'k'.repeat(401) }),
      item('kept', 'bob', { $process_person_profile: 'no' }),
    ])
    assert.deepEqual(
      (await project.events()).map(({ event, person_mode }) => [event, person_mode]),
      [['kept', 'full']],
    )
    assert.deepEqual(await project.warnings(), {
      invalid_anon_distinct_id: 2,
      invalid_alias: 2,
      invalid_event_when_process_person_profile_is_false: 1,
      group_key_too_long: 1,
      invalid_process_person_profile: 1,
    })
  })

  it('up to five group types are numbered by first use, and stored events refer to groups by that number', async () => {
    const project = await aProject()
    const first = item('e', 'ada', { $groups: { company: 'acme', team: 7 } })
    await project.send([
      first,
      item('$groupidentify', 'ada', { $group_type: 'site', $group_key: 42, $group_set: { n: 1, deep: { a: 1 } } }),
    ])
    const rest = item('e', 'ada', { $groups: { city: 'x', plan: 'y', sixth: 'z', company: 'acme' } })
    await project.send([
      rest,
      item('$group_identify', 'ada', { $group_type: 'site', $group_key: '42', $group_set: { deep: { b: 2 } } }),
      item('$groupidentify', 'ada', { $group_type: 'site', $group_key: '42', $group_set: { n: 1 } }),
      item('$groupidentify', 'ada', { $group_type: 'sixth', $group_key: 'z' }),
      item('$groupidentify', 'ada', { $group_type: 'team', $group_key: 'core', $group_set: 'text' }),
      item('$groupidentify', 'ada', { $group_type: 'team', $group_key: '', $group_set: { a: 1 } }),
    ])
    const types = await project.groupTypes()
    assert.deepEqual(
      types.map(type => [type.group_type, type.group_type_index]),
      [
        ['company', 0],
        ['team', 1],
        ['site', 2],
        ['city', 3],
        ['plan', 4],
      ],
    )
    type GroupAnswer = { group_key: string; group_properties: unknown; version: number }
    const sites = await project.list<GroupAnswer>('/groups/?group_type_index=2')
    assert.deepEqual(
      sites.map(({ group_key, group_properties, version }) => [group_key, group_properties, version]),
      [['42', { n: 1, deep: { b: 2 } }, 2]],
    )
    assert.deepEqual(await project.list('/groups/?group_type_index=1'), [])
    const { $group_0, $group_1, $group_2 } = (await project.event(first)).properties
    assert.deepEqual([$group_0, $group_1, $group_2], ['acme', 7, undefined])
    const named = (await project.event(rest)).properties
    assert.deepEqual(
      ['$group_0', '$group_3', '$group_4', '$group_5'].map(key => named[key]),
      ['acme', 'x', 'y', undefined],
    )
    assert.equal((named.$groups as Properties).sixth, 'z', 'the properties stay as they were sent')
    assert.deepEqual(await project.warnings(), { invalid_group_set: 1, group_type_refused: 2 })
    assert.equal((await project.events()).length, 8)
  })
})
