// How the worker reads cookieless visitors on SQLite. It writes them inside its chunk's transaction (`chunk-commit.ts`).

import { countIdentifiesText } from '#adapters/sql/processing/chunk-queries.ts'
import { toResourceItem } from '#adapters/sql/tables/resource-rows.ts'
import { type StateSchema, visitorIdentify, visitorSession } from '#adapters/sql/tables/schema.ts'
import type {
  LoadedIdentifies,
  VisitorSession,
  VisitorSessionName,
  WantedIdentifies,
} from '#core/processing/visitors.ts'
import type { SqliteDatabase } from './open-sqlite.ts'

export interface VisitorReads {
  loadIdentifies(wanted: WantedIdentifies): LoadedIdentifies
  loadSessions(wanted: readonly VisitorSessionName[]): readonly VisitorSession[]
}

/** Every read is a separate transaction. */
export function prepareVisitorReads(database: SqliteDatabase): VisitorReads {
  const count = database.prepare<[number, string, number], number>(countIdentifiesText).pluck()
  const find = database.prepare<[number, string, string], StateSchema['cookieless_identify']>(
    'SELECT * FROM cookieless_identify WHERE project_id = ? AND hash = ? AND uuid = ?',
  )
  const sessions = database.prepare<[number, string, number], StateSchema['cookieless_session']>(
    'SELECT * FROM cookieless_session WHERE project_id = ? AND hash = ? AND identifies = ?',
  )
  return {
    loadIdentifies: database.transaction(({ visitors, events }: WantedIdentifies) => ({
      counts: visitors.map(({ projectId, hash, beforeOffset }) => count.get(projectId, hash, beforeOffset) ?? 0),
      known: events
        .flatMap(({ projectId, hash, uuid }) => find.all(projectId, hash, uuid))
        .map(row => toResourceItem(visitorIdentify, row)),
    })).deferred,
    loadSessions: database.transaction((wanted: readonly VisitorSessionName[]) =>
      wanted
        .flatMap(({ projectId, hash, identifies }) => sessions.all(projectId, hash, identifies))
        .map(row => toResourceItem(visitorSession, row)),
    ).deferred,
  }
}
