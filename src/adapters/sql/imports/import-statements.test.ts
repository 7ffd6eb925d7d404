import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createAssignmentRecords } from './import-statements.ts'

it('a merged person passes to the survivor only flag and cohort assignments that the survivor does not have yet', () => {
  const has = new Map([
    ['survivor', { hashKeys: [['a', 's']] as const, cohortIds: [1] }],
    [
      'first',
      {
        hashKeys: [
          ['a', 'f'],
          ['b', 'f'],
        ] as const,
        cohortIds: [1, 2],
      },
    ],
    [
      'second',
      {
        hashKeys: [
          ['b', 'x'],
          ['c', 'x'],
        ] as const,
        cohortIds: [2],
      },
    ],
    ['nothing', { hashKeys: [], cohortIds: [] }],
  ])
  const merges = ['first', 'nothing', 'second'].map(uuid => ({
    projectId: 1,
    uuid,
    survivorUuid: 'survivor',
    loadedVersion: 0,
  }))
  const records = createAssignmentRecords(7, merges, uuid => has.get(uuid)!)
  assert.deepEqual(
    records.map(({ uuid, own, taken }) => [uuid, own.hashKeys, taken.hashKeys, taken.cohortIds]),
    [
      ['first', has.get('first')!.hashKeys, [['b', 'f']], [2]],
      ['second', has.get('second')!.hashKeys, [['c', 'x']], []],
    ],
  )
})
