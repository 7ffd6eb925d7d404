import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { UndoRecord } from '#core/imports/import-changes.ts'
import { parseJson } from '#core/json.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import { aGroup, aPerson } from '../../../../tests/support/values.ts'
import { makeAssignmentRecords } from './kept-assignments.ts'
import { encodeUndoValue, parseUndoRecord } from './undo-record-text.ts'

const row = { import_job_id: 7, kind: 'person', subject: 's', project_id: 1, before_image: 'null', after_image: 'null' }

describe('the undo record of a subject', () => {
  it('is restored from its text', () => {
    const mark: PropertyMark = {
      kind: 'import_set',
      timestampMs: 5,
      uuid: 'u',
      importJobId: 7,
      once: { timestampMs: 1, uuid: 'o' },
    }
    const properties = parseJson('{"a":1.0,"__proto__":null,"ü":"\\ud800"}') as never
    const values: UndoRecord['before'][] = [
      null,
      { ...aPerson({ properties, marks: { a: mark, b: mark, ü: { ...mark, timestampMs: 6 } } }), anyId: "'" },
      aGroup({ properties, marks: {} }),
      { personUuid: 'u', version: 3 },
      { personUuid: 'u', hashKeys: [['flag', 'hash']], cohortIds: [] },
    ]
    for (const before of values)
      for (const after of values) {
        const undoRecord = parseUndoRecord({
          ...row,
          before_image: encodeUndoValue(before),
          after_image: encodeUndoValue(after),
        })
        assert.deepEqual(undoRecord, { importJobId: 7, projectId: 1, kind: 'person', subject: 's', before, after })
      }
  })

  it('is refused if its text is damaged', () => {
    for (const text of ['', '{', '{"marks":"["}', '{"marks":"[[1]]"}'])
      assert.throws(() => parseUndoRecord({ ...row, before_image: text }), { code: 'corrupt' }, text)
  })
})

it('a merged person passes its flags and cohorts to the survivor, unless an earlier one did', () => {
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
  const undoRecords = makeAssignmentRecords(7, merges, uuid => has.get(uuid)!)
  assert.deepEqual(
    undoRecords.map(({ subject, before, after }) => [subject, before?.hashKeys, after?.hashKeys, after?.cohortIds]),
    [
      ['first', has.get('first')!.hashKeys, [['b', 'f']], [2]],
      ['second', has.get('second')!.hashKeys, [['c', 'x']], []],
    ],
  )
})
