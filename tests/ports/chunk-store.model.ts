// Compares a chunk store with the memory store as its model: the same random commits must have the same results and
// leave the same state. Versions and references are random too, so that most kinds of refusal occur.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Person } from '#core/persons/person.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import { loadWhole, type OpenState, openMemoryState, type StateHarness } from '../support/state.ts'
import { aGroup, aMapping, aPerson, chunkChanges } from '../support/values.ts'

const persons = [0, 1, 2].map(index => aPerson({ uuid: `person-${index}` }))
const distinctIds = ['d0', 'd1', '__proto__']
const groupNames = ['company', 'constructor']
const position = { stream: 'main', ownerId: 'w1', offset: 1, committedAtMs: 0 } as const

const version = fc.constantFrom(0, 0, 1, 2)
const loadedVersion = fc.constantFrom(null, null, 0, 1)
const person = fc.constantFrom(...persons)

const personChange = fc
  .record({ person, version, loadedVersion, plan: fc.constantFrom('free', 'paid') })
  .map(({ person, version, loadedVersion, plan }) => ({
    row: { ...person, version, properties: { plan } } satisfies Person,
    loadedVersion,
  }))

const mappingChange = fc
  .record({ person, id: fc.constantFrom(...distinctIds), version, loadedVersion })
  .map(({ person, id, version, loadedVersion }) => ({ row: aMapping(person, id, version), loadedVersion }))

const merge = fc
  .record({ merged: person, survivor: person, loadedVersion: fc.constantFrom(0, 1) })
  .filter(({ merged, survivor }) => merged !== survivor)
  .map(({ merged, survivor, loadedVersion }) => ({
    projectId: 1,
    uuid: merged.uuid,
    survivorUuid: survivor.uuid,
    loadedVersion,
  }))

const groupType = fc.record({
  projectId: fc.constant(1),
  name: fc.constantFrom(...groupNames),
  index: fc.constantFrom(0, 1),
})

const groupChange = fc
  .record({ typeIndex: fc.constantFrom(0, 1), version, loadedVersion })
  .map(({ typeIndex, version, loadedVersion }) => ({ row: aGroup({ typeIndex, version }), loadedVersion }))

const commits = fc.array(
  fc.record({
    persons: fc.array(personChange, { maxLength: 3 }),
    mappings: fc.array(mappingChange, { maxLength: 2 }),
    deletedPersons: fc.array(merge, { maxLength: 1 }),
    groupTypes: fc.array(groupType, { maxLength: 1 }),
    groups: fc.array(groupChange, { maxLength: 1 }),
    personlessDistinctIds: fc.array(
      fc.constantFrom(...distinctIds).map(distinctId => ({ projectId: 1, distinctId })),
      { maxLength: 1 },
    ),
    neverPersonlessDistinctIds: fc.array(
      fc.constantFrom(...distinctIds).map(distinctId => ({ projectId: 1, distinctId })),
      { maxLength: 1 },
    ),
    overrideOf: fc.option(person),
    membershipOf: fc.option(fc.tuple(person, fc.constantFrom(1, 2, 3))),
  }),
  { minLength: 1, maxLength: 12 },
)

// Every run begins with it, so that what the random commits say they loaded is often what is there.
const newcomer: ChunkChanges = chunkChanges({
  persons: [{ row: { ...aPerson({ uuid: 'person-0' }), version: 0 }, loadedVersion: null }],
  mappings: [{ row: aMapping(aPerson({ uuid: 'person-0' }), 'd0', 0), loadedVersion: null }],
  groups: [{ row: aGroup({ typeIndex: 0, version: 0 }), loadedVersion: null }],
})

/** Registers the test of one adapter. */
export function chunkStoreModelTest(adapter: string, open: OpenState, runCount: number): void {
  test(`ChunkStore on ${adapter} gives the same results and state as the in-memory store on random commits`, async t => {
    const real = await open(t)
    let committedCount = 0
    let projectCount = 0
    await fc.assert(
      fc.asyncProperty(commits, async run => {
        // All runs share a file, each with its own project: opening a file per run would take most of the test's time.
        const projectId = 100 + projectCount++
        const model = await openMemoryState(t)
        for (const store of [model, real]) {
          await store.chunkStore.claimPosition('main', 'w1')
          assert.equal(await store.chunkStore.commitChunk(inProject(newcomer, projectId), position), 'committed')
        }
        for (const { overrideOf, membershipOf, ...changes } of run) {
          if (overrideOf !== null) {
            for (const store of [model, real]) await addOverrideOnce(store, projectId, overrideOf.uuid)
          }
          if (membershipOf !== null) {
            const [{ uuid }, cohortId] = membershipOf
            // Ids of cohorts are instance-wide.
            for (const store of [model, real]) await store.addMembership(projectId, uuid, 10 * projectId + cohortId)
          }
          const moved = inProject(chunkChanges(changes), projectId)
          const expected = await model.chunkStore.commitChunk(moved, position)
          assert.equal(await real.chunkStore.commitChunk(moved, position), expected)
          if (expected === 'committed') committedCount++
        }
        assert.deepEqual(await everythingOf(real, projectId), await everythingOf(model, projectId))
      }),
      { numRuns: runCount },
    )
    assert.ok(committedCount > 0, `none of the random commits went through`)
  })
}

async function addOverrideOnce(store: StateHarness, projectId: number, uuid: string): Promise<void> {
  if ((await store.overridesOf(projectId, uuid)).length === 0)
    await store.addOverride(projectId, uuid, 'beta', `hash of ${uuid}`)
}

function inProject(changes: ChunkChanges, projectId: number): ChunkChanges {
  const own = <T extends { readonly projectId: number }>(row: T): T => ({ ...row, projectId })
  const versioned = <T extends { readonly projectId: number }>(change: { row: T; loadedVersion: number | null }) => ({
    ...change,
    row: own(change.row),
  })
  return {
    ...changes,
    persons: changes.persons.map(versioned),
    mappings: changes.mappings.map(versioned),
    deletedPersons: changes.deletedPersons.map(own),
    groupTypes: changes.groupTypes.map(own),
    groups: changes.groups.map(versioned),
    personlessDistinctIds: changes.personlessDistinctIds.map(own),
    neverPersonlessDistinctIds: changes.neverPersonlessDistinctIds.map(own),
  }
}

async function everythingOf(store: StateHarness, projectId: number): Promise<unknown> {
  const loaded = await loadWhole(store.chunkStore, {
    distinctIds: distinctIds.map(distinctId => ({ projectId, distinctId })),
    groups: groupNames.map(typeName => ({ projectId, typeName, key: 'acme' })),
    projectIds: [projectId],
  })
  // Only a store that keeps text has it; the persons themselves are compared.
  const { personPropertiesJson: _, importUndos: _undos, erasures: _erasures, textBytes, textBytesOf, ...rows } = loaded
  const lists: [string, readonly unknown[]][] = Object.entries(rows)
  const sorted = lists.map(([name, rows]) => [name, rows.map(row => JSON.stringify(row)).toSorted()])
  return [
    textBytes,
    [...textBytesOf],
    sorted,
    await Promise.all(persons.map(({ uuid }) => store.overridesOf(projectId, uuid))),
    await Promise.all(persons.map(({ uuid }) => store.membershipsOf(projectId, uuid))),
  ]
}
