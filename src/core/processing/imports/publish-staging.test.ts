import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type ImportOptions, usualOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { noRegisters, toMarkAndValue } from '#core/processing/properties/import-registers.ts'
import {
  batchOf,
  committed,
  groupsIn,
  jobId,
  notesOf,
  personsIn,
  projectId,
  type Someone,
  type StagingState,
  stagedGroup,
  stagingState,
} from '../../../../tests/support/staging-state.ts'
import { aGroup } from '../../../../tests/support/values.ts'
import {
  groupNotesByReason,
  ProjectGoneError,
  publishGroups,
  publishImportLinks,
  publishPersonlessIds,
  publishPersons,
} from './publish-staging.ts'

const marked = (kind: PropertyMark['kind'], timestampMs: number, importJobId = jobId): PropertyMark => ({
  ...{ kind, timestampMs, uuid: `u${timestampMs}`, importJobId },
})
const set = (timestampMs: number) => marked('import_set', timestampMs)
const once = (timestampMs: number) => marked('import_once', timestampMs)
const liveOnce = marked('live_once', 10, 0)
const large = 'x'.repeat(655_360)

describe('publishing a staged person', () => {
  const overwriting = { ...usualOptions, overwritesPersons: true }
  const backdating = { ...usualOptions, backdatesFirstTouch: true }
  type Profile = Pick<Someone, 'properties' | 'marks'>
  const a = (value: JsonObject[string], mark?: PropertyMark): Profile => ({
    properties: { a: value },
    ...(mark && { marks: { a: mark } }),
  })
  const noA: Profile = { properties: {}, marks: { a: marked('import_unset', 6) } }
  const oddKeys = JSON.parse('{"__proto__": 2, "constructor": 3}') as JsonObject
  const cases: [name: string, theirs: Profile, ours: Profile, expected: JsonObject, options?: ImportOptions][] = [
    ['adds a key', { properties: { b: 2 }, marks: { b: set(5) } }, a(1), { a: 1, b: 2 }],
    ['keeps a live value', a(2, set(99)), a(1), { a: 1 }],
    ['keeps a live null', a(2, set(99)), a(null), { a: null }],
    ['keeps the value of a live $set_once', a(2, once(1)), a(1, liveOnce), { a: 1 }],
    ['replaces an earlier import’s $set', a(2, set(6)), a(1, set(5)), { a: 2 }],
    ['keeps a later import’s $set', a(2, set(5)), a(1, set(6)), { a: 1 }],
    ['removes an import’s value on a later $unset', noA, a(1, set(5)), {}],
    ['does not remove a live value', noA, a(1), { a: 1 }],
    ['shows the earlier of two $set_once', a(2, once(5)), a(1, once(6)), { a: 2 }],
    [
      'accepts keys with the names of members of every object',
      { properties: oddKeys, marks: { constructor: set(5) } },
      { properties: {} },
      oddKeys,
    ],
    ['replaces a live value if the job overwrites', a(2, set(5)), a(1), { a: 2 }, overwriting],
    ['does not overwrite a live value by a $set_once', a(2, once(5)), a(1), { a: 1 }, overwriting],
    ['replaces a later live $set_once if the job backdates', a(2, once(9)), a(1, liveOnce), { a: 2 }, backdating],
    ['keeps an earlier live $set_once if the job backdates', a(2, once(11)), a(1, liveOnce), { a: 1 }, backdating],
    ['changes nothing if the job has no properties', { properties: {} }, a(1), { a: 1 }],
  ]
  for (const [name, theirs, ours, expected, options] of cases)
    it(name, () => {
      const state = stagingState({ persons: [{ id: 'ada', ...ours }], staged: [{ id: 'ada', ...theirs }] })
      const batch = publishPersons(batchOf(state, options && { options }), ['ada'])
      const [person] = personsIn(committed(state, batch))
      assert.deepEqual({ ...person!.properties }, expected)
      assert.deepEqual(notesOf(batch), [])
    })

  it('combines the times and the identity of the staged person and the project’s person', () => {
    for (const { ours, theirs, joined = null } of [
      { ours: [5, 5, false], theirs: [5, 5, false] },
      { ours: [5, 5, false], theirs: [4, 5, false], joined: [4, 5, false] },
      { ours: [5, 5, false], theirs: [6, 6, false], joined: [5, 6, false] },
      { ours: [5, 5, false], theirs: [5, 5, true], joined: [5, 5, true] },
      { ours: [5, 9, true], theirs: [6, 8, false] },
      { ours: [0, 0, true], theirs: [-1, 1, false], joined: [-1, 1, true] },
    ] as const satisfies readonly Record<string, readonly [number, number, boolean]>[]) {
      const someone = ([createdAtMs, lastSeenAtMs, isIdentified]: readonly [number, number, boolean]) => ({
        ...{ id: 'ada', createdAtMs, lastSeenAtMs, isIdentified },
      })
      const state = stagingState({ persons: [someone(ours)], staged: [someone(theirs)] })
      const batch = publishPersons(batchOf(state), ['ada'])
      const [person] = personsIn(committed(state, batch))
      const { createdAtMs, lastSeenAtMs, isIdentified } = person!
      assert.deepEqual([createdAtMs, lastSeenAtMs, isIdentified], joined ?? ours)
      // An unchanged person is not written: that would conflict with live events for no reason.
      const rows = batch.changes.persons.map(({ row, loadedVersion }) => [row.version, loadedVersion])
      assert.deepEqual(rows, joined === null ? [] : [[1, 0]])
    }
  })

  it('does not merge properties that would be too large together, but merges everything else', () => {
    const state = stagingState({
      persons: [{ id: 'ada', properties: { a: 1 }, createdAtMs: 5 }],
      staged: [{ id: 'ada', properties: { b: large, c: 1 }, marks: { b: set(1), c: set(1) }, createdAtMs: 4 }],
    })
    const batch = publishPersons(batchOf(state), ['ada'])
    const [person] = personsIn(committed(state, batch))
    assert.deepEqual([person!.properties, person!.createdAtMs], [{ a: 1 }, 4])
    assert.deepEqual(notesOf(batch), [['person_properties_size_violation', 1]])
  })

  it('creates a person for an id that has none', () => {
    for (const [personless, version] of [
      [[], 0],
      // Rows without a person already have the uuid of that person.
      [[{ projectId, distinctId: 'ada' }], 0],
      // An undone import had given the id an override.
      [[{ projectId, distinctId: 'ada', nextVersion: 3 }], 3],
    ] as const) {
      const staged = { id: 'ada', properties: { a: 1 }, marks: { a: set(1) }, createdAtMs: 3, lastSeenAtMs: 4 }
      const state = stagingState({ staged: [staged], personlessDistinctIds: personless })
      const batch = publishPersons(batchOf(state), ['ada'])
      assert.deepEqual(personsIn(committed(state, batch)), [
        {
          ids: ['ada'],
          ...{ properties: { a: 1 }, marks: { a: set(1) } },
          createdAtMs: 3,
          lastSeenAtMs: 4,
          isIdentified: false,
        },
      ])
      const personId = personUuid(projectId, 'ada')
      assert.deepEqual(
        batch.changes.mappings.map(({ row }) => row),
        [{ projectId, distinctId: 'ada', personUuid: personId, version }],
      )
      assert.deepEqual(batch.overrides, version === 0 ? [] : [{ projectId, distinctId: 'ada', personId, version }])
    }
  })

  it('maps the job’s rows to the person that has the id when the job is published', () => {
    for (const { ids, overrides } of [
      { ids: { ada: 0 }, overrides: [] },
      { ids: { ada: 0, anon: 0 }, overrides: [['anon', 1]] },
      { ids: { ada: 0, anon: 4 }, overrides: [] },
    ]) {
      const state = stagingState({ persons: [{ id: 'ada', ids }], staged: [{ id: 'ada' }, { id: 'anon' }] })
      const batch = publishPersons(batchOf(state), Object.keys(ids))
      assert.deepEqual(
        batch.overrides.map(({ distinctId, version }) => [distinctId, version]),
        overrides,
      )
    }
  })

  it('removes the published ids from the staged ids, and ignores unknown ids', () => {
    const state = stagingState({ staged: [{ id: 'ada' }, { id: 'bob' }, { id: 'cy' }] })
    const batch = publishPersons(batchOf(state), ['bob', 'nobody', 'ada'])
    const done = batch.changes.imports!.removedMappings.map(({ distinctId }) => distinctId)
    assert.deepEqual(done, ['bob', 'ada'])
    assert.deepEqual(
      personsIn(committed(state, batch)).map(({ ids }) => ids),
      [['ada'], ['bob']],
    )
  })

  it('fails if the project no longer exists', () => {
    const state = stagingState({ staged: [{ id: 'ada' }] })
    assert.throws(() => publishPersons(batchOf(state, { projectId: 2 }), ['ada']), ProjectGoneError)
  })

  it('gives the same persons in any order and any division into batches', () => {
    const time = fc.record({ timestampMs: fc.nat(3), uuid: fc.constantFrom('u1', 'u2', 'u3') })
    // The job's latest write and its first $set_once; a uuid belongs to one event, so it has one value.
    const registers = fc
      .record({ latest: fc.option(fc.tuple(time, fc.boolean())), once: fc.option(time) })
      .filter(({ latest, once }) => latest !== null || once !== null)
    const profile = fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), registers).map(keys => {
      const shown = Object.entries(keys).map(([key, { latest, once }]) => {
        const value = (at: { timestampMs: number; uuid: string }, op: string) => `${op} ${at.timestampMs} ${at.uuid}`
        const last = latest && { ...latest[0], uuid: `l${latest[0].uuid}` }
        return [
          key,
          toMarkAndValue({
            ...noRegisters,
            importJobId: jobId,
            latest:
              last && (latest[1] ? { kind: 'set', ...last, value: value(last, 'set') } : { kind: 'unset', ...last }),
            once: once && { ...once, value: value(once, 'once') },
          }),
        ] as const
      })
      return {
        properties: Object.fromEntries(
          shown.flatMap(([key, { value }]) => (value === undefined ? [] : [[key, value]])),
        ),
        marks: Object.fromEntries(shown.map(([key, { mark }]) => [key, mark])),
      }
    })
    const someone = fc.tuple(profile, fc.nat(5), fc.nat(5), fc.boolean())
    const ids = ['ada', 'anon', 'bob']
    fc.assert(
      fc.property(
        fc.tuple(someone, someone, someone),
        fc.constantFrom<JsonObject>({}, { a: 'live' }),
        fc.shuffledSubarray(ids, { minLength: ids.length }),
        fc.nat(ids.length),
        (persons, properties, order, split) => {
          const staged = persons.map(([profile, createdAtMs, lastSeenAtMs, isIdentified], place) => ({
            ...{ id: ids[place]!, ...profile, createdAtMs, lastSeenAtMs, isIdentified },
          }))
          const ada: Someone = {
            id: 'ada',
            properties,
            ids: { ada: 0, anon: 1 },
          }
          const published = (...batches: string[][]) =>
            batches.reduce<StagingState>(
              (state, some) => committed(state, publishPersons(batchOf(state), some)),
              stagingState({ persons: [ada], staged }),
            )
          const expected = personsIn(published(ids))
          assert.deepEqual(personsIn(published(order.slice(0, split), order.slice(split))), expected)
        },
      ),
      { numRuns: 100 },
    )
  })
})

describe('making the links of an import job', () => {
  const link = (distinctId: string, otherId: string, over: object = {}) => ({
    ...{ importJobId: jobId, distinctId, otherId, dangerously: false, timestampMs: 3, uuid: 'u' },
    ...over,
  })
  const ada = { id: 'ada', properties: { a: 1 } }
  const anon = { id: 'anon', properties: { a: 2, b: 2 } }
  const cases: [
    name: string,
    persons: readonly Someone[],
    links: readonly ReturnType<typeof link>[],
    expected: readonly [ids: string, properties: JsonObject, isIdentified: boolean][],
    notes?: string[],
  ][] = [
    ['creates one person for both ids', [], [link('ada', 'anon')], [['ada,anon', {}, true]]],
    ['adds an id to the person of the other', [anon], [link('ada', 'anon')], [['ada,anon', { a: 2, b: 2 }, true]]],
    ['adds the other id to the person', [ada], [link('ada', 'anon')], [['ada,anon', { a: 1 }, true]]],
    [
      'merges two persons into the one of the event’s own id',
      [ada, anon],
      [link('ada', 'anon')],
      [['ada,anon', { a: 1, b: 2 }, true]],
    ],
    [
      'merges in the direction in which the link was sent',
      [ada, anon],
      [link('anon', 'ada')],
      [['ada,anon', { a: 2, b: 2 }, true]],
    ],
    [
      'links a chain within one batch',
      [],
      [link('ada', 'anon'), link('cy', 'anon'), link('dee', 'cy')],
      [['ada,anon,cy,dee', {}, true]],
    ],
    [
      'does nothing for a link that already exists',
      [{ ...ada, isIdentified: true, ids: { ada: 0, anon: 1 } }],
      [link('ada', 'anon'), link('ada', 'anon')],
      [['ada,anon', { a: 1 }, true]],
    ],
    [
      'does not merge an identified person',
      [ada, { ...anon, isIdentified: true }],
      [link('ada', 'anon')],
      [
        ['ada', { a: 1 }, true],
        ['anon', { a: 2, b: 2 }, true],
      ],
      ['cannot_merge_already_identified'],
    ],
    [
      'merges an identified person dangerously',
      [ada, { ...anon, isIdentified: true }],
      [link('ada', 'anon', { dangerously: true })],
      [['ada,anon', { a: 1, b: 2 }, true]],
    ],
  ]
  for (const [name, persons, links, expected, notes = []] of cases)
    it(name, () => {
      const state = stagingState({ persons })
      const batch = publishImportLinks(
        batchOf(state),
        links.map((link, index) => ({ id: 10 + index, link })),
      )
      const found = personsIn(committed(state, batch)).map(({ ids, properties, isIdentified }) => {
        const { $creator_event_uuid: _, ...others } = properties
        return [ids.join(), others, isIdentified]
      })
      assert.deepEqual(found, expected)
      assert.deepEqual(
        notesOf(batch).map(([reason]) => reason),
        notes,
      )
      assert.deepEqual(
        batch.changes.imports!.doneLinkIds,
        links.map((_, index) => 10 + index),
      )
    })

  it('creates a person with the time of the event, and moves existing ones only to an earlier time', () => {
    for (const [persons, createdAtMs] of [
      [[], 3],
      [[{ ...ada, createdAtMs: 2 }], 2],
      [[{ ...ada, createdAtMs: 4 }], 3],
    ] as const) {
      const state = stagingState({ persons })
      const [person] = personsIn(
        committed(state, publishImportLinks(batchOf(state), [{ id: 1, link: link('ada', 'anon') }])),
      )
      assert.equal(person!.createdAtMs, createdAtMs)
    }
  })
})

describe('publishing ids that have no staged person', () => {
  it('maps their rows to the person that has the ids now, or that gets them in the future', () => {
    const state = stagingState({ persons: [{ id: 'ada', ids: { ada: 0, anon: 0, old: 2 } }] })
    const batch = publishPersonlessIds(batchOf(state), ['ada', 'anon', 'old', 'new'])
    assert.deepEqual(
      batch.overrides.map(({ distinctId, version }) => [distinctId, version]),
      [['anon', 1]],
    )
    assert.deepEqual(batch.changes.personlessDistinctIds, [{ projectId, distinctId: 'new' }])
    const again = publishPersonlessIds(batchOf(committed(state, batch)), ['ada', 'anon', 'old', 'new'])
    assert.deepEqual([again.overrides, again.changes.personlessDistinctIds, again.changes.mappings], [[], [], []])
  })
})

describe('publishing a staged group', () => {
  const type = { projectId, name: 'team', index: 0 }
  const marks = { b: set(5) }
  type Described = { readonly properties: JsonObject; readonly createdAtMs: number } | null
  const at = (createdAtMs: number, properties: JsonObject): Described => ({ properties, createdAtMs })
  const theirs = at(5, { b: 2 })
  const [half, other] = [{ a: large.slice(20) }, { b: large.slice(20) }]
  const [tooLarge, deleted] = ['group_properties_size_violation', 'group_type_deleted']
  const cases: [
    name: string,
    ours: Described,
    staged: Described,
    expected: Described,
    notes?: string[],
    today?: string | null,
  ][] = [
    ['creates the group', null, theirs, theirs],
    ['adds keys and keeps the earlier time', at(4, { a: 1 }), theirs, at(4, { a: 1, b: 2 })],
    ['takes only the earlier time if the value is live', at(6, { b: 1 }), theirs, at(5, { b: 1 })],
    ['does not change a group that would become too large', at(6, half), at(5, other), at(6, half), [tooLarge]],
    ['drops the group if its index has another type now', null, theirs, null, [deleted], 'org'],
    ['drops the group if its index has no type now', null, theirs, null, [deleted], null],
  ]
  for (const [name, ours, staged, expected, notes = [], today = 'team'] of cases)
    it(name, () => {
      const state = stagingState({
        groupTypes: today === null ? [] : [{ ...type, name: today }],
        groups: [
          ...(ours === null ? [] : [aGroup({ key: 'acme', ...ours })]),
          stagedGroup('acme', staged!.properties, { marks, createdAtMs: staged!.createdAtMs }),
        ],
      })
      const asked = [
        { typeIndex: 0, key: 'acme' },
        { typeIndex: 0, key: 'unknown' },
        { typeIndex: 1, key: 'acme' },
      ]
      const batch = publishGroups(batchOf(state), asked, new Map([[0, 'team']]))
      const after = committed(state, batch)
      assert.deepEqual(
        groupsIn(after).map(({ properties, createdAtMs }) => ({ properties, createdAtMs })),
        expected === null ? [] : [expected],
      )
      assert.deepEqual(
        notesOf(batch).map(([reason]) => reason),
        notes,
      )
      // The staging overlay no longer has the group, whatever the outcome.
      assert.equal(after.loaded.groups.length, expected === null ? 0 : 1)
    })
})

it('notes are counted by reason and keep their details', () => {
  const note = (reason: string, n: number) => ({ reason, details: { n } })
  assert.deepEqual(groupNotesByReason(jobId, []), [])
  assert.deepEqual(groupNotesByReason(jobId, [note('b', 1), note('a', 2), note('b', 3)]), [
    { importJobId: jobId, reason: 'b', count: 2, samples: [{ n: 1 }, { n: 3 }] },
    { importJobId: jobId, reason: 'a', count: 1, samples: [{ n: 2 }] },
  ])
})
