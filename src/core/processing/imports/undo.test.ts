// Tests the state after a published job is undone. How it is undone is free to change, so nothing here names an undo record.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import { creatorKey } from '#core/processing/properties/person-update.ts'
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
import { publishGroups, publishLinks, publishPersons } from './publish-staging.ts'
import { undoMerges } from './split-merges.ts'
import type { UndoBatch } from './undo-batch.ts'
import { undoImplicitJobOfGroups, undoImplicitJobOfPersons } from './undo-implicit-job.ts'
import { undoGroups, undoPersons } from './undo-publish.ts'

const teams = [{ projectId, name: 'team', index: 0 }]
const mark = (kind: PropertyMark['kind'], importJobId: number): PropertyMark => ({
  ...{ kind, timestampMs: 5, uuid: 'u', importJobId },
})

function published(state: StagingState, links: readonly (readonly string[])[]): StagingState {
  const staged = state.loaded.mappings.filter(row => row.projectId !== projectId)
  const groups = state.loaded.groups.filter(row => row.projectId !== projectId)
  const asked = links.map(([distinctId, otherId], id) => ({
    id,
    link: {
      importJobId: jobId,
      distinctId: distinctId!,
      otherId: otherId!,
      dangerously: false,
      timestampMs: 5,
      uuid: `link ${id}`,
    },
  }))
  const linked = committed(state, publishLinks(batchOf(state), asked))
  const ids = staged.map(({ distinctId }) => distinctId)
  const joined = committed(linked, publishPersons(batchOf(linked), ids))
  return committed(
    joined,
    publishGroups(batchOf(joined), groups, new Map(teams.map(({ index, name }) => [index, name]))),
  )
}

/** By default, no other events use the ids. */
function undoBatch(state: StagingState, over: Partial<UndoBatch> = {}): UndoBatch {
  return {
    ...batchOf(state),
    ...{
      undoRecords: state.undoRecords,
      uses: [],
      laterWrites: [],
      importedKeys: [],
      importedGroupKeys: [],
      laterWriters: [],
    },
    ...{ keysOfSurvivors: [], writersOfSurvivors: [], groupUses: [], laterJobIds: [] },
    ...over,
  }
}

function undone(state: StagingState, over: Partial<UndoBatch> = {}): { state: StagingState; reasons: string[] } {
  const reasons: string[] = []
  let left = state
  for (const [kind, undo] of [
    ['id_count', undoMerges],
    ['person', undoPersons],
    ['group', undoGroups],
  ] as const) {
    const subjects = left.undoRecords.flatMap(undoRecord => (undoRecord.kind === kind ? [undoRecord.subject] : []))
    const batch = undo(undoBatch(left, over), subjects)
    reasons.push(...notesOf(batch).map(([reason]) => reason))
    left = committed(left, batch)
  }
  return { state: left, reasons }
}

describe('undoing a published job', () => {
  it('restores the persons that existed before, whatever the job linked and wrote', () => {
    const ids = ['ada', 'anon', 'bob', 'cy']
    const properties = (from: string) =>
      fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom(`${from} 1`, `${from} 2`, null))
    const times = { createdAtMs: fc.integer({ min: 1, max: 9 }), lastSeenAtMs: fc.integer({ min: 1, max: 9 }) }
    const someone = fc.record({ properties: properties('live'), isIdentified: fc.boolean(), ...times })
    const staged = fc.record({ properties: properties('job'), ...times })
    const marksOf = (of: JsonObject) => Object.fromEntries(Object.keys(of).map(key => [key, mark('import_set', jobId)]))
    const named = <Of>(each: fc.Arbitrary<Of>) => fc.array(fc.tuple(fc.constantFrom(...ids), each), { maxLength: 4 })
    fc.assert(
      fc.property(
        named(someone),
        named(staged),
        fc.array(fc.shuffledSubarray(ids, { minLength: 2, maxLength: 2 }), { maxLength: 3 }),
        (live, job, links) => {
          const before = stagingState({
            // Every live person has the event that created it.
            persons: [...new Map(live)].map(([id, { properties, ...of }]) => ({
              ...{ id, properties: { ...properties, [creatorKey]: 'live' }, ...of },
            })),
            staged: [...new Map(job)].map(([id, of]) => ({ id, ...of, marks: marksOf(of.properties) })),
          })
          const { state, reasons } = undone(published(before, links))
          assert.deepEqual(personsIn(state), personsIn(before))
          assert.deepEqual(reasons, [])
        },
      ),
      { numRuns: 100 },
    )
  })

  it('restores groups', () => {
    for (const groups of [[], [aGroup({ key: 'acme', properties: { a: 1 }, createdAtMs: 9 })]]) {
      const theirs = { a: 2, b: 2 }
      const staged = stagedGroup('acme', theirs, { marks: { b: mark('import_set', jobId) }, createdAtMs: 3 })
      const before = stagingState({ groupTypes: teams, groups: [...groups, staged] })
      const { state, reasons } = undone(published(before, []))
      assert.deepEqual(groupsIn(state), groupsIn(before))
      assert.deepEqual(reasons, [])
    }
  })

  const theirs: Someone = { id: 'ada', properties: { b: 2 }, marks: { b: mark('import_set', jobId) } }
  const cases: [
    name: string,
    since: (of: JsonObject) => JsonObject,
    expected: JsonObject | null,
    reasons: readonly string[],
  ][] = [
    ['keeps properties that live events have set since', of => ({ ...of, c: 3 }), { a: 1, c: 3 }, []],
    [
      'keeps a later live value of a key that the job wrote',
      of => ({ ...of, b: 3 }),
      { a: 1, b: 3 },
      ['undo_left:property_was_written'],
    ],
    ['does not restore a key of the job that was removed since', ({ a }) => ({ a: a! }), { a: 1 }, []],
  ]
  for (const [name, since, expected, reasons] of cases)
    it(name, () => {
      const before = stagingState({ persons: [{ id: 'ada', properties: { a: 1 } }], staged: [theirs] })
      const state = published(before, [])
      const persons = state.loaded.persons.map(person => {
        const properties = since(person.properties)
        const marks = properties.b === person.properties.b ? person.marks : {}
        return { ...person, properties, marks, version: person.version + 1 }
      })
      const after = undone({ ...state, loaded: { ...state.loaded, persons } })
      assert.deepEqual(personsIn(after.state)[0]?.properties, expected)
      assert.deepEqual(after.reasons, reasons)
    })

  it('keeps a person that the job created if other events use it', () => {
    const before = stagingState({ staged: [theirs] })
    const use = { importJobId: 0, distinctId: 'ada', otherId: null, isLater: true, writes: false }
    for (const [uses, expected, reasons] of [
      [[], [], []],
      [[use], [{}], ['undo_left:person_is_used']],
    ] as const) {
      const after = undone(published(before, []), { uses })
      assert.deepEqual(
        personsIn(after.state).map(({ properties }) => properties),
        expected,
      )
      assert.deepEqual(after.reasons, reasons)
    }
  })

  it('keeps a merge that a live event has confirmed', () => {
    const before = stagingState({ persons: [{ id: 'ada' }, { id: 'anon' }] })
    const use = { importJobId: 0, distinctId: 'ada', otherId: 'anon', isLater: true, writes: false }
    const after = undone(published(before, [['ada', 'anon']]), { uses: [use] })
    assert.deepEqual(
      personsIn(after.state).map(({ ids }) => ids),
      [['ada', 'anon']],
    )
    assert.deepEqual(after.reasons, ['undo_left:link_was_confirmed'])
  })
})

describe('undoing an implicit job', () => {
  it('removes values with its mark, and persons and groups that nothing else uses', () => {
    const [byImplicitJob, ofOther, live] = [mark('import_set', jobId), mark('import_set', 8), mark('live_once', 0)]
    const properties = { a: 1, b: 2, c: 3, d: 4 }
    const marks = { b: byImplicitJob, c: ofOther, d: live }
    for (const [of, usedIds, expected] of [
      [{ properties, marks }, [], { a: 1, c: 3, d: 4 }],
      [{ properties: { b: 2 }, marks: { b: byImplicitJob } }, [], null],
      [{ properties: { b: 2 }, marks: { b: byImplicitJob } }, ['ada'], {}],
      [{ properties: { a: 1 } }, [], { a: 1 }],
      [{ properties: {} }, [], {}],
    ] as const) {
      const state = stagingState({ persons: [{ id: 'ada', ...of }] })
      const batch = { ...undoBatch(state), usedIds: new Set<string>(usedIds) }
      const after = committed(state, undoImplicitJobOfPersons(batch, [state.loaded.persons[0]!.uuid, 'unknown']))
      assert.deepEqual(personsIn(after)[0]?.properties ?? null, expected)
      const groups = stagingState({ groupTypes: teams, groups: [aGroup({ ...of })] })
      const groupUses = usedIds.map(() => ({ importJobId: 0, typeName: 'team', key: 'acme' }))
      const left = committed(
        groups,
        undoImplicitJobOfGroups(undoBatch(groups, { groupUses }), [
          { typeIndex: 0, key: 'acme' },
          { typeIndex: 0, key: 'unknown' },
        ]),
      )
      assert.deepEqual(groupsIn(left)[0]?.properties ?? null, expected)
    }
  })
})
