import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createNoteWarnings } from './note-warnings.ts'

it('a warning counts records, or groups and actions of which a record may have several', () => {
  const notes = new Map([
    ['amplitude_id_used', 1_500],
    ['group_values_dropped', 4],
    ['matomo_goal_left_out', 10],
    ['matomo_type_unknown:form:x', 1],
    ['zone_shift:7200', 9],
  ])
  assert.deepEqual(
    createNoteWarnings(notes, 3_000).map(({ text }) => text),
    [
      '1,500 records (50 %) have neither a user nor a device id, so their amplitude_id is used.',
      '4 groups are left out of their event, which can have only one group of each type.',
      '10 actions are goals, which give no separate events: the action that reached a goal says so too.',
      '1 action is of the unknown type form:x.',
    ],
  )
})

it('a warning about a single record uses the singular', () => {
  const notes = [
    'amplitude_id_used',
    'type_mismatch:Amount',
    'group_key_illegal:Company',
    'invalid_uuid',
    'spread_no_object:extra',
  ]
  assert.deepEqual(
    createNoteWarnings(new Map(notes.map(note => [note, 1])), 2).map(({ text }) => text),
    [
      '1 record (50 %) has neither a user nor a device id, so its amplitude_id is used.',
      '1 record (50 %) has a value in Company that cannot be the key of a group, since it is neither text nor a number; it belongs to no group of this type.',
      '1 record (50 %) has an id that is not a UUID; it gets a UUID derived from it.',
      '1 record (50 %) has a value other than an object in extra, so spread cannot turn its members into properties; it is kept unchanged.',
      '1 record (50 %) has a value in Amount that does not have the type given in the mapping; it is kept unchanged.',
    ],
  )
})
