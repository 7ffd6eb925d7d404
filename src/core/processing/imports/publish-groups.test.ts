import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LoadedChunk } from '#core/processing/chunk.ts'
import { aGroup, aProject } from '../../../../tests/support/state-builders.ts'
import { publishGroups } from './publish-shelf.ts'

const loaded: LoadedChunk = {
  ...{ projects: [aProject()], mappings: [], persons: [], personMappings: [], personlessDistinctIds: [] },
  ...{ textBytes: 0, textBytesOf: new Map() },
  groupTypes: [{ projectId: 1, name: 'team', index: 0 }],
  groups: [aGroup({ projectId: -7, typeIndex: 0, key: 'acme' })],
}

function publish(typeName: string) {
  const batch = { importJobId: 7, projectId: 1, loaded, nowMs: 0, groupTypeNames: new Map([[0, typeName]]) }
  const { changes } = publishGroups(batch, [{ typeIndex: 0, key: 'acme' }])
  return [changes.groups.map(({ row }) => row.projectId), changes.imports?.notes.map(({ reason }) => reason)]
}

describe('publishing a group', () => {
  it('joins it with those of the type that the job named', () => {
    assert.deepEqual(publish('team'), [[1], []])
  })

  it('leaves it out when its index has another type by now', () => {
    assert.deepEqual(publish('org'), [[], ['group_type_deleted']])
  })
})
