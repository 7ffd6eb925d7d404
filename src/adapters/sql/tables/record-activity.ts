// Writes an entry of the activity log. It runs in the transaction of the change that the entry records.

import type { Kysely } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import { type PersonalKey, personalKeyResource } from '#core/personal-key.ts'
import { toActivityLogFields } from '#core/resource.ts'
import { toAuthorText } from './rows.ts'
import type { StateSchema } from './schema.ts'
import { toStorableText } from './wrap-methods.ts'

/** @param activity null when there is nothing to record. */
export async function recordActivity(
  trx: Kysely<StateSchema>,
  activity: NewActivity | null,
  { by, atMs }: Change,
): Promise<void> {
  if (activity === null) return
  await trx
    .insertInto('activity_log')
    .values({
      project_id: activity.projectId,
      kind: activity.kind,
      item_id: activity.itemId,
      item_name: toStorableText(activity.itemName),
      activity: activity.activity,
      version: activity.version ?? null,
      changes: JSON.stringify(activity.changes),
      author: toAuthorText(by),
      created_at: atMs,
    })
    .execute()
}

export async function recordKeyDeletion(trx: Kysely<StateSchema>, key: PersonalKey, change: Change): Promise<void> {
  const entry = createActivityEntry(toLoggedKey(key), toActivityLogFields(personalKeyResource, key), null)
  await recordActivity(trx, entry, change)
}

export function toLoggedKey({ id, label }: PersonalKey) {
  return { kind: 'personal_api_key', projectId: null, itemId: id, itemName: label } as const
}
