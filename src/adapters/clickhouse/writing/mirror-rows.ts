// Writes the mirror of persons and groups, and reports what it contains.

import type {
  MirroredGroup,
  MirroredGroupKey,
  MirroredPerson,
  MirroredPersonKey,
} from '#core/processing/mirror-subjects.ts'
import type { MirrorRows, MirrorState, SubjectMirror } from '#ports/events/event-store-upkeep.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import type { RowWriteResult } from './event-rows.ts'
import type { RowInserter } from './insert-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'
import { listRowRanges } from './row-ranges.ts'

const mirrorTables = ['persons', 'groups']
const personColumns = 'project_id, uuid, created_at, is_identified, properties, version, is_deleted'
const groupColumns = 'project_id, group_type_index, group_key, created_at, properties, version, is_deleted'

export function createSubjectMirror(clients: Pick<ClickHouseClients, 'write'>, inserter: RowInserter): SubjectMirror {
  return {
    async writeSubjects({ persons = [], deletedPersons = [], groups = [], deletedGroups = [] }: MirrorRows, version) {
      const personRows = [...persons, ...deletedPersons]
      const groupRows = [...groups, ...deletedGroups]
      const refused = [
        ...(await inserter.insert({
          table: 'persons',
          columns: personColumns,
          rows: personRows,
          write: (to, row) => writePerson(to, row, version),
        })),
        ...(await inserter.insert({
          table: 'groups',
          columns: groupColumns,
          rows: groupRows,
          write: (to, row) => writeGroup(to, row, version),
        })),
      ]
      // No row should be refused: the rows come from the state database, where they were checked when they were written.
      if (refused.length > 0) throw new Error(`the event store refused a person or group: ${refused[0]!.message}`)
    },

    findMirrorState: withVersion =>
      clients.write(async (client, database): Promise<MirrorState> => {
        const read = <T>(query: string) => readRows<T>(client, undefined, { query })
        const [fill] = await read<[string, number, string]>(
          `SELECT fill_id, is_complete, toString(version) FROM ${database}.subject_mirror_fill ORDER BY version DESC LIMIT 1`,
        )
        const versions = withVersion
          ? await Promise.all(
              mirrorTables.map(table => read<[string]>(`SELECT toString(max(version)) FROM ${database}.${table}`)),
            )
          : null
        return {
          fillId: fill?.[0] ?? null,
          isComplete: fill?.[1] === 1,
          version: versions && Math.max(Number(fill?.[2] ?? 0), ...versions.map(([row]) => Number(row![0]))),
          ranges: await listRowRanges(client, database, mirrorTables),
        }
      }),

    beginMirrorFill: (fillId, version) =>
      clients.write(async (client, database) => {
        await writeFill(client, database, { fillId, isComplete: false, version })
        for (const table of mirrorTables) await client.command({ query: `TRUNCATE TABLE ${database}.${table}` })
      }),

    completeMirrorFill: (fillId, version) =>
      clients.write((client, database) => writeFill(client, database, { fillId, isComplete: true, version })),
  }
}

async function writeFill(
  client: ClickHouseClient,
  database: string,
  fill: { readonly fillId: string; readonly isComplete: boolean; readonly version: number },
): Promise<void> {
  await client.command({
    query: `INSERT INTO ${database}.subject_mirror_fill (fill_id, is_complete, version)
      SELECT {fillId:String}, {isComplete:UInt8}, {version:UInt64}`,
    query_params: { ...fill, isComplete: fill.isComplete ? 1 : 0 },
  })
}

function writePerson(to: RowBinaryWriter, row: MirroredPerson | MirroredPersonKey, version: number): RowWriteResult {
  const kept = 'propertiesJson' in row ? row : null
  to.uint32(row.projectId)
  if (!to.uuid(row.uuid)) return { refused: 'uuid is not a UUID' }
  to.int64(kept?.createdAtMs ?? 0)
  to.uint8(kept?.isIdentified === true ? 1 : 0)
  to.text(kept?.propertiesJson ?? '')
  to.int64(version)
  to.uint8(kept === null ? 1 : 0)
  return 'written'
}

function writeGroup(to: RowBinaryWriter, row: MirroredGroup | MirroredGroupKey, version: number): RowWriteResult {
  const kept = 'propertiesJson' in row ? row : null
  to.uint32(row.projectId)
  to.uint8(row.typeIndex)
  to.text(row.key)
  to.int64(kept?.createdAtMs ?? 0)
  to.text(kept?.propertiesJson ?? '')
  to.int64(version)
  to.uint8(kept === null ? 1 : 0)
  return 'written'
}
