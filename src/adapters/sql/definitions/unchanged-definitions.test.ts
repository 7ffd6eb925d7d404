import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { aCohort, aProject } from '../../../../tests/support/values.ts'
import { addUnchangedDefinitions, listDefinitionVersions } from './unchanged-definitions.ts'

const definitions = (cohorts: readonly (readonly [id: number, version: number])[]): ProjectDefinitions => ({
  ...{
    project: aProject(),
    revision: 1,
    flags: [],
    groupTypes: [],
    earlyAccessFeatures: [],
    secretKeyHashes: [],
    surveys: [],
  },
  cohorts: cohorts.map(([id, version]) => aCohort({ id, version })),
})

it('merging cached definitions with changed ones gives the same result as reading all of them', () => {
  const stored = fc.uniqueArray(fc.tuple(fc.nat(6), fc.nat(2)), { selector: ([id]) => id })
  const inOrder = stored.map(rows => rows.toSorted(([a], [b]) => a - b))
  fc.assert(
    fc.property(inOrder, inOrder, (before, now) => {
      const held = definitions(before)
      const { cohorts: versions } = listDefinitionVersions(held)
      assert.deepEqual(versions, before)
      const isHeld = ([id, version]: readonly [number, number]) =>
        before.some(row => row[0] === id && row[1] === version)
      const read = definitions(now.filter(row => !isHeld(row)))
      const gone = before.map(([id]) => id).filter(id => !now.some(row => row[0] === id))
      const changes = { projects: [{ read, gone: { flags: [], cohorts: gone } }] } as unknown as Parameters<
        typeof addUnchangedDefinitions
      >[0]
      const { projects } = addUnchangedDefinitions(changes, () => held)
      assert.deepEqual(projects[0]!.cohorts, definitions(now).cohorts)
      // A caller that holds nothing gets everything that was read.
      assert.equal(addUnchangedDefinitions(changes, () => null).projects[0], read)
    }),
    { numRuns: 100 },
  )
})
