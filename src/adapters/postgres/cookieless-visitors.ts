// How the worker reads cookieless visitors on PostgreSQL, and writes them inside a chunk's transaction. Comments on
// statements list the parameters.

import { toResourceItem, toResourceRow } from '#adapters/sql/tables/resource-rows.ts'
import { type StateSchema, visitorIdentify, visitorSession } from '#adapters/sql/tables/schema.ts'
import type {
  LoadedIdentifies,
  VisitorChanges,
  VisitorSession,
  VisitorSessionName,
  WantedIdentifies,
} from '#core/processing/visitors.ts'
import { insertStatements } from './chunk-statements.ts'
import type { Session } from './open-postgres.ts'
import { runStatementInSlices } from './statement-slices.ts'

/** project ids, hashes, offsets */
const countText = `
  SELECT k.place, i.ordinal + 1 AS count
  FROM unnest($1::bigint[], $2::text[], $3::bigint[]) WITH ORDINALITY AS k (project_id, hash, before_offset, place)
  CROSS JOIN LATERAL (
    SELECT ordinal FROM cookieless_identify AS c
    WHERE c.project_id = k.project_id AND c.hash = k.hash AND c.log_offset < k.before_offset
    ORDER BY c.log_offset DESC LIMIT 1
  ) AS i`

/** project ids, hashes, uuids */
const findText = `
  SELECT c.* FROM unnest($1::bigint[], $2::text[], $3::text[]) AS k (project_id, hash, uuid)
  JOIN cookieless_identify AS c ON c.project_id = k.project_id AND c.hash = k.hash AND c.uuid = k.uuid`

/** project ids, hashes, how many `$identify` events each visitor has */
const sessionsText = `
  SELECT c.* FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS k (project_id, hash, identifies)
  JOIN cookieless_session AS c ON c.project_id = k.project_id AND c.hash = k.hash AND c.identifies = k.identifies`

/** @throws what the driver throws, as do the other functions of this file. */
export async function loadIdentifyCounts(session: Session, wanted: WantedIdentifies): Promise<LoadedIdentifies> {
  const { visitors, events } = wanted
  const counts = visitors.map(() => 0)
  const counted = await session.query<{ place: number; count: number }>(countText, [
    ...toNameColumns(visitors),
    visitors.map(({ beforeOffset }) => beforeOffset),
  ])
  for (const { place, count } of counted.rows) counts[place - 1] = count
  if (events.length === 0) return { counts, known: [] }
  const found = await session.query<StateSchema['cookieless_identify']>(findText, [
    ...toNameColumns(events),
    events.map(({ uuid }) => uuid),
  ])
  return { counts, known: found.rows.map(row => toResourceItem(visitorIdentify, row)) }
}

export async function loadVisitorSessions(
  session: Session,
  wanted: readonly VisitorSessionName[],
): Promise<readonly VisitorSession[]> {
  const numbers = wanted.map(({ identifies }) => identifies)
  return (
    await session.query<StateSchema['cookieless_session']>(sessionsText, [...toNameColumns(wanted), numbers])
  ).rows.map(row => toResourceItem(visitorSession, row))
}

export async function writeVisitors(session: Session, { identifies, sessions }: VisitorChanges): Promise<void> {
  await runStatementInSlices(
    session,
    insertStatements.identifies,
    identifies.map(identify => Object.values(toResourceRow(visitorIdentify, identify))),
  )
  await runStatementInSlices(
    session,
    insertStatements.sessions,
    sessions.map(each => Object.values(toResourceRow(visitorSession, each))),
  )
}

function toNameColumns(wanted: readonly { readonly projectId: number; readonly hash: string }[]): [number[], string[]] {
  return [wanted.map(({ projectId }) => projectId), wanted.map(({ hash }) => hash)]
}
