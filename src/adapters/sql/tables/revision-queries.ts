// The instance's revision: one counter, bumped in every transaction that changes evaluation or deletes a personal key,
// and recorded on the project concerned, if any. Also allocates the ids that are never used twice.

import { type Kysely, sql } from 'kysely'
import type { ResourceName } from '#core/resources/resources.ts'
import type { StateSchema } from './schema.ts'

/** Bumps the counter and records it on the project, unless null. Call it in the transaction of the write itself. */
export async function bumpRevision(trx: Kysely<StateSchema>, projectId: number | null): Promise<number> {
  const { value } = await trx
    .updateTable('revision')
    .set({ value: sql<number>`value + 1` })
    .where('id', '=', 1)
    .returning('value')
    .executeTakeFirstOrThrow()
  if (projectId !== null)
    await trx
      .updateTable('project')
      .set({ revision: Number(value) })
      .where('id', '=', projectId)
      .execute()
  return Number(value)
}

export async function readRevision(db: Kysely<StateSchema>): Promise<number> {
  const { value } = await db.selectFrom('revision').select('value').where('id', '=', 1).executeTakeFirstOrThrow()
  return Number(value)
}

/** The next id of a kind; if the transaction is rolled back, the id is free again. */
export async function allocateId(
  trx: Kysely<StateSchema>,
  name: 'project' | 'feature_flag' | 'cohort' | 'import_job' | ResourceName,
): Promise<number> {
  const { last_id } = await trx
    .updateTable('id_sequence')
    .set({ last_id: sql<number>`last_id + 1` })
    .where('name', '=', name)
    .returning('last_id')
    .executeTakeFirstOrThrow()
  return Number(last_id)
}
