// Records that the log has lost, for the operator: their projects cannot be known.

import type { LogLoss } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { countedPageSchema, instant } from '#wire/management/shapes.ts'
import { type LostRecordsJson, lostRecordsSchema } from '#wire/management/status.ts'
import { wireError } from '#wire/wire-error.ts'
import { permissionDenied, refusal } from '../kit/answers.ts'
import { isLimitedToProjects } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { instanceRoutes, type ManagementRoute } from '../kit/endpoint.ts'
import { answerCountedList, encodeObjects } from '../kit/full-page.ts'
import { pageParams } from '../kit/query-params.ts'

export function lostRecordsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return instanceRoutes(deps, {
    route: 'GET /api/instance/lost_records',
    id: 'lost_records_list',
    tag: 'ingestion',
    summary:
      'List accepted records of the whole instance that the log lost or found damaged, newest first. Listed until log/lost-records.jsonl is removed.',
    scope: '*',
    query: pageParams(),
    success: { status: 200, schema: countedPageSchema(lostRecordsSchema) },
    handle: async call => {
      if (isLimitedToProjects(call.caller)) return refusal(limitedKey)
      try {
        const losses = (await deps.log.losses()).toReversed()
        return await answerCountedList(
          call,
          call.query,
          async ({ limit, offset }) => ({ count: losses.length, results: losses.slice(offset, offset + limit) }),
          encodeObjects(encodeLoss),
        )
      } catch (error) {
        if (!(error instanceof PortError)) throw error
        return refusal(logUnavailable)
      }
    },
  })
}

function encodeLoss(loss: LogLoss): LostRecordsJson {
  return {
    lane: loss.stream,
    from_offset: loss.fromOffset,
    to_offset: loss.toOffset,
    record_count: loss.recordCount ?? loss.toOffset - loss.fromOffset,
    file: loss.file,
    noticed_at: instant(loss.noticedAtMs),
    body: loss.body ?? null,
  }
}

const limitedKey = permissionDenied('This key is limited to some projects; lost records concern all projects.')

const logUnavailable = wireError(503, 'transient_error', 'The log is temporarily unavailable: repeat the request.')
