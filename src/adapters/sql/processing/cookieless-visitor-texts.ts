// Statements for cookieless visitors that both engines share, as SQL text with `?` for parameters.

import type { VisitorIdentify, VisitorSession } from '#core/processing/visitors.ts'
import type { StateSchema } from '../tables/schema.ts'

export type IdentifyRow = StateSchema['cookieless_identify']
export type SessionRow = StateSchema['cookieless_session']

/** project_id, hash, offset: how many `$identify` events there are before that. Ordinals ascend with offsets. */
export const countIdentifiesText = `
  SELECT ordinal + 1 FROM cookieless_identify WHERE project_id = ? AND hash = ? AND log_offset < ?
  ORDER BY log_offset DESC LIMIT 1`

export function identifyOf(row: IdentifyRow): VisitorIdentify {
  const { hash, uuid, day } = row
  return {
    projectId: Number(row.project_id),
    hash,
    uuid,
    ordinal: Number(row.ordinal),
    offset: Number(row.log_offset),
    day,
  }
}

export function sessionOf(row: SessionRow): VisitorSession {
  return {
    projectId: Number(row.project_id),
    hash: row.hash,
    identifies: Number(row.identifies),
    offset: Number(row.log_offset),
    sessionId: row.session_id,
    lastMs: Number(row.last_at),
    day: row.day,
  }
}

/** In the order of the columns that `inserts.ts` names. */
export function identifyColumns({ projectId, hash, offset, uuid, ordinal, day }: VisitorIdentify) {
  return [projectId, hash, offset, uuid, ordinal, day] as const
}

export function sessionColumns({ projectId, hash, identifies, offset, sessionId, lastMs, day }: VisitorSession) {
  return [projectId, hash, identifies, offset, sessionId, lastMs, day] as const
}
