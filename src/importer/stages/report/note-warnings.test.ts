import assert from 'node:assert/strict'
import { it } from 'node:test'
import { noteWarnings } from './note-warnings.ts'

it('a warning counts records, or what one record may have several of', () => {
  const notes = new Map([
    ['amplitude_id_used', 1_500],
    ['group_values_dropped', 4],
    ['matomo_goal_left_out', 10],
    ['matomo_type_unknown:form:x', 1],
    ['zone_shift:7200', 9],
  ])
  assert.deepEqual(
    noteWarnings(notes, 3_000).map(({ text }) => text),
    [
      '1,500 records (50 %) have neither a user nor a device id, so they are of their amplitude_id.',
      '4 groups are not told with their event, which may have one of each type.',
      '10 actions are goals, which give no events of their own: the action that reached a goal tells of it too.',
      '1 action is of the type form:x, which is not known.',
    ],
  )
})

it('a warning of a single record speaks of one', () => {
  const notes = [
    'amplitude_id_used',
    'type_mismatch:Amount',
    'group_key_illegal:Company',
    'invalid_uuid',
    'spread_no_object:extra',
  ]
  assert.deepEqual(
    noteWarnings(new Map(notes.map(note => [note, 1])), 2).map(({ text }) => text),
    [
      '1 record (50 %) has neither a user nor a device id, so it is of its amplitude_id.',
      '1 record (50 %) has a value in Company that is no key of a group, neither text nor a number; it belongs to none of its type.',
      '1 record (50 %) has an id that is no UUID; it gets one made of it.',
      '1 record (50 %) has something else than an object in extra, whose members spread makes properties; it stays as it is.',
      '1 record (50 %) has a value in Amount that is not of the type that the mapping gives it; it stays as it is.',
    ],
  )
})
