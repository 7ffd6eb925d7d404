import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AssignmentsRecord } from '#core/imports/import-changes.ts'
import type { JsonObject } from '#core/json.ts'
import type { Person } from '#core/persons/person.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import type { LoadedChunk } from '#core/processing/chunk.ts'
import type { ProjectState } from '#core/processing/chunk-state.ts'
import { aHistoricEvent } from '../../../../tests/support/historic-events.ts'
import { batchOf, committed, jobId, projectId, stagingState } from '../../../../tests/support/staging-state.ts'
import { aProject } from '../../../../tests/support/values.ts'
import { applyHistoryDifference, type DifferenceBatch } from './apply-difference.ts'
import { foldHistoryWithAndWithoutJob } from './fold-history.ts'
import { type HistoricEvent, orderHistory } from './historic-event.ts'

type Sent = readonly [id: string, changes: JsonObject, over?: Partial<HistoricEvent>]

const org = { $group_type: 'org', $group_key: 'x' }
const groupTypes = [{ projectId, name: 'org', index: 0 }]
const uuid = (id: string) => personUuid(projectId, id)
const ofJob = { importJobId: jobId, historicalMigration: true, timestampMs: 5 }
const link = (linkedId: string) => ({ event: '$identify', linkedId })

/** The folds with and without the events of the job. */
function foldsOf(sent: readonly Sent[], of: 'persons' | 'groups') {
  const events = sent.map(([distinctId, changes, over], index) =>
    aHistoricEvent({
      ...{ uuid: `0199a000-0000-4000-8000-00000000000${index}`, logOffset: index, distinctId },
      ...('$group_key' in changes && { event: '$groupidentify' }),
      ...{ changesJson: JSON.stringify(changes), ...over },
    }),
  )
  const items = orderHistory(events, new Map())
  return { events, ...foldHistoryWithAndWithoutJob({ project: aProject(), groupTypes, of, items }, jobId) }
}

/** The stored state that is as in the fold. An id of another person has had an override. */
function storedAs(state: ProjectState): LoadedChunk {
  const { loaded } = stagingState({ groupTypes })
  const persons = new Map<string, Person>()
  const mappings = Array.from(state.mappings, ([distinctId, { person }]) => {
    const { properties, marks, createdAtMs, isIdentified, lastSeenAtMs } = person
    const values = { properties, marks, createdAtMs, isIdentified, lastSeenAtMs }
    persons.set(person.uuid, { projectId, uuid: person.uuid, ...values, version: 3 })
    return { projectId, distinctId, personUuid: person.uuid, version: person.uuid === uuid(distinctId) ? 0 : 4 }
  })
  const groups = state.changedGroups().map(({ row }) => row)
  return { ...loaded, persons: [...persons.values()], mappings, personMappings: mappings, groups }
}

function withPerson(loaded: LoadedChunk, id: string, change: (person: Person) => Partial<Person>): LoadedChunk {
  return { ...loaded, persons: loaded.persons.map(row => (row.uuid === uuid(id) ? { ...row, ...change(row) } : row)) }
}

const withProperties = (id: string, more: JsonObject) => (loaded: LoadedChunk) =>
  withPerson(loaded, id, ({ properties }) => ({ properties: { ...properties, ...more } }))

/** Commits what undoing the job changes, and checks that a repetition changes nothing more. */
function undone(
  sent: readonly Sent[],
  change: (loaded: LoadedChunk, wanted: LoadedChunk) => LoadedChunk = loaded => loaded,
  over: Partial<DifferenceBatch> = {},
) {
  const of = sent.some(([, changes]) => '$group_key' in changes) ? 'groups' : 'persons'
  const { events, with: was, without: wanted } = foldsOf(sent, of)
  const idsWithEvents = new Set(events.map(({ distinctId }) => distinctId))
  const state = { loaded: change(storedAs(was), storedAs(wanted)) }
  const batch = { ...batchOf(state), was, wanted, idsWithEvents, ...over }
  const done = applyHistoryDifference(batch)
  const after = committed(state, done)
  const again = applyHistoryDifference({ ...batch, loaded: after.loaded })
  assert.deepEqual([again.changes.persons, again.changes.mappings, again.changes.groups], [[], [], []])
  const idsOf = (row: Person) =>
    after.loaded.mappings.filter(each => each.personUuid === row.uuid).map(each => each.distinctId)
  return {
    ...done,
    persons: Object.fromEntries(
      after.loaded.persons.map(row => {
        const { $creator_event_uuid: _creator, ...properties } = row.properties as JsonObject
        return [idsOf(row).sort().join(' '), properties]
      }),
    ),
    groups: after.loaded.groups.map(({ properties }) => properties),
    imports: done.changes.imports!,
    noted: done.notes.map(({ details }) => details),
    after,
  }
}

describe('after undoing a job, a person', () => {
  const sent: Sent[] = [
    ['a', { $set: { live: 1 } }],
    ['a', { $set: { k: 1 } }, ofJob],
  ]
  const cases: readonly {
    readonly name: string
    readonly now?: (loaded: LoadedChunk, wanted: LoadedChunk) => LoadedChunk
    readonly left: JsonObject
    readonly noted?: readonly JsonObject[]
  }[] = [
    { name: 'that the events explain becomes as without the job', left: { live: 1 } },
    { name: 'that is as without the job stays', now: (_, wanted) => wanted, left: { live: 1 } },
    {
      name: 'keeps a value that no event explains',
      now: withProperties('a', { other: 1 }),
      left: { live: 1, other: 1 },
    },
    {
      name: 'keeps a value of the key that the job wrote if no event explains it, with a note',
      now: loaded => withPerson(withProperties('a', { k: 9 })(loaded), 'a', () => ({ marks: {} })),
      left: { live: 1, k: 9 },
      noted: [{ personId: uuid('a'), key: 'k' }],
    },
    {
      name: 'loses a value whose mark names the job, with a note, if its event is not stored',
      now: loaded =>
        withPerson(loaded, 'a', ({ properties, marks }) => ({
          properties: { ...(properties as JsonObject), lost: 1 },
          marks: { ...marks, lost: marks.k! },
        })),
      left: { live: 1 },
      noted: [{ personId: uuid('a'), key: 'lost' }],
    },
    {
      name: 'keeps a time of creation that no event explains, with a note',
      now: loaded => withPerson(loaded, 'a', () => ({ createdAtMs: 77 })),
      left: { live: 1 },
      noted: [{ personId: uuid('a'), field: 'created_at' }],
    },
  ]
  for (const { name, now, left, noted = [] } of cases)
    it(name, () => {
      const result = undone(sent, now)
      assert.deepEqual(result.persons, { a: left })
      assert.deepEqual(result.noted, noted)
    })

  it('keeps a key that every object inherits, such as constructor', () => {
    const properties = JSON.parse('{"$set":{"__proto__":1}}') as JsonObject
    const { after } = undone(
      [
        ['a', {}],
        ['a', properties, { ...ofJob, importJobId: 9 }],
        ['a', { $set: { k: 1 } }, ofJob],
      ],
      withProperties('a', { other: 1 }),
    )
    const [{ properties: left, marks }] = after.loaded.persons as [Person]
    assert.deepEqual(
      [Object.keys(left).sort(), Object.keys(marks)],
      [['$creator_event_uuid', '__proto__', 'other'], ['__proto__']],
    )
  })

  it('created only by the job is removed, with an override for an id that had another person before', () => {
    const { persons, overrides, imports } = undone([['a', {}, { ...ofJob, ...link('b') }]])
    assert.deepEqual(persons, {})
    assert.deepEqual(overrides, [{ projectId, distinctId: 'b', personId: uuid('b'), version: 5 }])
    assert.deepEqual(imports.nextVersions, [{ projectId, distinctId: 'b', version: 6 }])
  })

  it('created only by the job stays unchanged, with a note, if no event explains one of its values', () => {
    const { persons, noted } = undone([['a', { $set: { k: 1 } }, ofJob]], withProperties('a', { other: 1 }))
    assert.deepEqual(persons, { a: { k: 1, other: 1 } })
    assert.deepEqual(noted, [{ distinctIds: ['a'] }])
  })

  it('stays unchanged, with a note, if no event explains its ids, while other persons change', () => {
    const sentToBoth: Sent[] = [...sent, ['b', {}], ['c', { $set: { k: 1 } }, ofJob]]
    const { persons, noted } = undone(sentToBoth, loaded => {
      const mappings = loaded.mappings.map(row => (row.distinctId === 'b' ? { ...row, personUuid: uuid('a') } : row))
      return {
        ...loaded,
        persons: loaded.persons.filter(row => row.uuid !== uuid('b')),
        mappings,
        personMappings: mappings,
      }
    })
    assert.deepEqual(persons, { 'a b': { live: 1, k: 1 } })
    assert.deepEqual(noted, [{ distinctIds: ['a', 'b'] }])
  })

  it('stays unchanged while not all links between its ids have been examined', () => {
    const { persons, noted } = undone(sent, undefined, { openIds: new Set(['a']) })
    assert.deepEqual([persons, noted], [{ a: { live: 1, k: 1 } }, []])
  })

  it('keeps its uuid, even if the remaining events would give it the uuid of another of its ids', () => {
    const { after, noted } = undone(
      [
        ['b', {}, { personMode: 'propertyless' }],
        ['a', {}, link('b')],
        ['a', { $set: { k: 1 } }, ofJob],
      ],
      loaded => {
        const mappings = loaded.mappings.map(row => ({ ...row, personUuid: uuid('a') }))
        return {
          ...loaded,
          persons: loaded.persons.map(row => ({ ...row, uuid: uuid('a') })),
          mappings,
          personMappings: mappings,
        }
      },
    )
    assert.deepEqual(noted, [])
    assert.deepEqual(
      after.loaded.persons.map(row => [row.uuid, 'k' in row.properties]),
      [[uuid('a'), false]],
    )
  })
})

describe('after undoing a job, a person that the job merged away', () => {
  const sent: Sent[] = [
    ['a', { $set: { a: 1 } }],
    ['b', { $set: { b: 1 } }],
    ['a', {}, { ...ofJob, ...link('b') }],
  ]

  it('exists again with a version above the survivor’s, and with an override above all earlier overrides', () => {
    const publishedOverrides = [{ projectId, distinctId: 'b', personId: uuid('b'), version: 8 }]
    const { persons, changes, overrides } = undone(sent, undefined, { publishedOverrides })
    assert.deepEqual(persons, { a: { a: 1 }, b: { b: 1 } })
    const restored = changes.persons.find(({ row }) => row.uuid === uuid('b'))
    assert.deepEqual([restored?.row.version, restored?.loadedVersion], [4, null])
    assert.deepEqual(overrides, [{ projectId, distinctId: 'b', personId: uuid('b'), version: 9 }])
  })

  const record = (id: string, survivor: string, own: string, taken = own): AssignmentsRecord => {
    const assignmentsOf = (flag: string) => ({ hashKeys: flag === '' ? [] : [[flag, id] as const], cohortIds: [] })
    const ofPerson = { importJobId: jobId, projectId, uuid: uuid(id), survivorUuid: uuid(survivor) }
    return { ...ofPerson, own: assignmentsOf(own), taken: assignmentsOf(taken) }
  }

  it('gets its flag and cohort assignments back from the survivor', () => {
    const { imports } = undone(sent, undefined, { assignments: [record('b', 'a', 'beta')] })
    assert.deepEqual(imports.returnedAssignments, [
      {
        ...{ projectId, uuid: uuid('b'), survivorUuid: uuid('a') },
        assignments: { hashKeys: [['beta', 'b']], cohortIds: [] },
        given: { hashKeys: [['beta', 'b']], cohortIds: [] },
      },
    ])
  })

  it('gets its own assignments back from the last survivor of a chain, but not those that it got in merges', () => {
    const chain: Sent[] = [...sent, ['c', {}], ['c', {}, { ...ofJob, event: '$merge_dangerously', linkedId: 'a' }]]
    const ofB = record('b', 'a', 'beta')
    const ofA = { ...record('a', 'c', ''), own: ofB.own, taken: ofB.own }
    const { imports, persons } = undone(chain, undefined, { assignments: [ofB, ofA] })
    assert.deepEqual(Object.keys(persons).sort(), ['a', 'b', 'c'])
    const shown = imports.returnedAssignments.map(each => [
      each.uuid,
      each.survivorUuid,
      each.assignments.hashKeys.length,
    ])
    assert.deepEqual(
      new Set(shown),
      new Set([
        [uuid('b'), uuid('c'), 1],
        [uuid('a'), uuid('c'), 0],
      ]),
    )
  })
})

describe('after undoing a job, a group', () => {
  const live: Sent = ['a', { ...org, $group_set: { live: 1 } }]
  const described: Sent = ['a', { ...org, $group_set: { k: 1 } }, ofJob]
  const withGroup = (more: JsonObject) => (loaded: LoadedChunk) => ({
    ...loaded,
    groups: loaded.groups.map(row => ({ ...row, properties: { ...(row.properties as JsonObject), ...more } })),
  })

  it('becomes what it would be without the job if the events explain it', () => {
    assert.deepEqual(undone([live, described]).groups, [{ live: 1 }])
    assert.deepEqual(undone([described]).groups, [])
  })

  it('keeps values that no event explains', () => {
    const { groups, noted } = undone([live, described], withGroup({ other: 1 }))
    assert.deepEqual([groups, noted], [[{ live: 1, other: 1 }], []])
  })

  it('created only by the job stays, with a note, if no event explains one of its values', () => {
    const { groups, noted } = undone([described], withGroup({ other: 1 }))
    assert.deepEqual(groups, [{ k: 1, other: 1 }])
    assert.deepEqual(noted, [{ groupTypeIndex: 0, groupKey: 'x' }])
  })
})
