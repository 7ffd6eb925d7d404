// Reads persons and groups for their mirror in the event store. Sizes are read before texts, so that a page takes a limited
// part of the worker's memory, however large persons are.

import { type Kysely, sql } from 'kysely'
import {
  decodeSubjects,
  type MirroredGroup,
  type MirroredGroupKey,
  type MirroredPerson,
  type MirroredPersonKey,
} from '#core/processing/mirror-subjects.ts'
import type { MirrorFill, SubjectMirrorSource } from '#ports/state/subject-mirror-source.ts'
import { countFittingRows } from '../tables/read-pages.ts'
import type { GroupTable, PersonTable, StateSchema } from '../tables/schema.ts'

/** The most bytes of one page, which the worker holds twice: as it was read, and as rows for the event store. */
const pageBytesMax = 8 * 1024 * 1024
const pageRowsMax = 1_000
/** SQLite takes 32,766 parameters; a person has two, a group three. */
const keysPerQuery = 500
/** The most changes that one step takes: those of one large chunk, or of many small chunks. */
const changesPerStep = 200
const changeBytesMax = 4 * 1024 * 1024

const personBytes = sql<number>`octet_length(properties)`
const groupBytes = sql<number>`octet_length(group_properties)`
const personColumns = ['project_id', 'uuid', 'properties', 'created_at', 'is_identified'] as const
const groupColumns = ['project_id', 'group_type_index', 'group_key', 'group_properties', 'created_at'] as const

export function createSubjectMirrorQueries(db: Kysely<StateSchema>): SubjectMirrorSource {
  return {
    async findMirrorProgress() {
      const row = await db.selectFrom('subject_mirror').select(['version', 'fill']).executeTakeFirstOrThrow()
      return { version: Number(row.version), fill: JSON.parse(row.fill) as MirrorFill | null }
    },

    async saveMirrorProgress({ version, fill }, fromVersion) {
      const { numUpdatedRows } = await db
        .updateTable('subject_mirror')
        .set({ version, fill: JSON.stringify(fill) })
        .where('version', '=', fromVersion)
        .executeTakeFirst()
      return numUpdatedRows === 1n
    },

    async findChangedSubjects() {
      const sizes = await db
        .selectFrom('subject_change')
        .select(['id', sql<number>`octet_length(subjects)`.as('bytes')])
        .orderBy('id')
        .limit(changesPerStep)
        .execute()
      const changeIds = sizes.slice(0, countFittingRows(sizes, changeBytesMax)).map(({ id }) => Number(id))
      if (changeIds.length === 0) return { persons: [], groups: [], changeIds }
      const rows = await db.selectFrom('subject_change').select('subjects').where('id', 'in', changeIds).execute()
      return { ...decodeSubjects(rows.map(({ subjects }) => subjects)), changeIds }
    },

    async settleChanges(changeIds) {
      if (changeIds.length > 0)
        await db
          .deleteFrom('subject_change')
          .where('id', 'in', [...changeIds])
          .execute()
    },

    async readMirroredPersons(keys) {
      const wanted = keys.slice(0, keysPerQuery)
      const sizes = await db
        .selectFrom('person')
        .select(['id', 'project_id', 'uuid', personBytes.as('bytes')])
        .where(isPersonInSql(wanted))
        .execute()
      const found = new Map(sizes.map(row => [`${row.project_id} ${row.uuid}`, row]))
      const inOrder = wanted.map(key => found.get(`${key.projectId} ${key.uuid}`) ?? { id: null, bytes: 0 })
      const lookedUp = countFittingRows(inOrder, pageBytesMax)
      const ids = inOrder.slice(0, lookedUp).flatMap(({ id }) => (id === null ? [] : [id]))
      if (ids.length === 0) return { lookedUp, persons: [] }
      const rows = await db.selectFrom('person').select(personColumns).where('id', 'in', ids).execute()
      return { lookedUp, persons: rows.map(toMirroredPerson) }
    },

    async readMirroredGroups(keys) {
      const wanted = keys.slice(0, keysPerQuery)
      const sizes = await db
        .selectFrom('group')
        .select(['project_id', 'group_type_index', 'group_key', groupBytes.as('bytes')])
        .where(isGroupInSql(wanted))
        .execute()
      const found = new Map(sizes.map(row => [`${row.project_id} ${row.group_type_index} ${row.group_key}`, row.bytes]))
      const lookedUp = countFittingRows(
        wanted.map(({ projectId, typeIndex, key }) => ({ bytes: found.get(`${projectId} ${typeIndex} ${key}`) ?? 0 })),
        pageBytesMax,
      )
      if (found.size === 0) return { lookedUp, groups: [] }
      const rows = await db
        .selectFrom('group')
        .select(groupColumns)
        .where(isGroupInSql(wanted.slice(0, lookedUp)))
        .execute()
      return { lookedUp, groups: rows.map(toMirroredGroup) }
    },

    async listMirroredPersons(after) {
      const sizes = await db
        .selectFrom('person')
        .select(['id', personBytes.as('bytes')])
        .where('project_id', '>', 0) // not the staging overlays of pending imports
        .$if(after !== null, query => query.where('id', '>', after!))
        .orderBy('id')
        .limit(pageRowsMax)
        .execute()
      const ids = sizes.slice(0, countFittingRows(sizes, pageBytesMax)).map(({ id }) => id)
      if (ids.length === 0) return { persons: [], next: null }
      const rows = await db.selectFrom('person').select(personColumns).where('id', 'in', ids).execute()
      return { persons: rows.map(toMirroredPerson), next: Number(ids.at(-1)!) }
    },

    async listMirroredGroups(after) {
      const sizes = await db
        .selectFrom('group')
        .select(['project_id', 'group_type_index', 'group_key', groupBytes.as('bytes')])
        .where('project_id', '>', 0)
        .$if(after !== null, query =>
          query.where(
            sql<boolean>`(project_id, group_type_index, group_key) > (${after!.projectId}, ${after!.typeIndex}, ${after!.key})`,
          ),
        )
        .orderBy('project_id')
        .orderBy('group_type_index')
        .orderBy('group_key')
        .limit(keysPerQuery)
        .execute()
      const keys = sizes.slice(0, countFittingRows(sizes, pageBytesMax)).map(toGroupKey)
      if (keys.length === 0) return { groups: [], next: null }
      const rows = await db.selectFrom('group').select(groupColumns).where(isGroupInSql(keys)).execute()
      return { groups: rows.map(toMirroredGroup), next: keys.at(-1)! }
    },
  }
}

function isPersonInSql(keys: readonly MirroredPersonKey[]) {
  return sql<boolean>`(project_id, uuid) IN (VALUES ${sql.join(
    keys.map(({ projectId, uuid }) => sql`(${bigint(projectId)}, ${uuid})`),
  )})`
}

function isGroupInSql(keys: readonly MirroredGroupKey[]) {
  return sql<boolean>`(project_id, group_type_index, group_key) IN (VALUES ${sql.join(
    keys.map(({ projectId, typeIndex, key }) => sql`(${bigint(projectId)}, ${bigint(typeIndex)}, ${key})`),
  )})`
}

/** Without a cast, PostgreSQL treats a parameter of a list of values as text. */
function bigint(value: number) {
  return sql`CAST(${value} AS BIGINT)`
}

function toGroupKey(row: Pick<GroupTable, 'project_id' | 'group_type_index' | 'group_key'>): MirroredGroupKey {
  return { projectId: Number(row.project_id), typeIndex: Number(row.group_type_index), key: row.group_key }
}

function toMirroredPerson(row: Pick<PersonTable, (typeof personColumns)[number]>): MirroredPerson {
  return {
    projectId: Number(row.project_id),
    uuid: row.uuid,
    propertiesJson: row.properties,
    createdAtMs: Number(row.created_at),
    isIdentified: Number(row.is_identified) === 1,
  }
}

function toMirroredGroup(row: Pick<GroupTable, (typeof groupColumns)[number]>): MirroredGroup {
  return { ...toGroupKey(row), propertiesJson: row.group_properties, createdAtMs: Number(row.created_at) }
}
