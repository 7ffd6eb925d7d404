// Downloads of all persons that fit the filters of the list.

import Type from 'typebox'
import type { PersonStore } from '#ports/state/person-store.ts'
import { exportPersons } from '#services/exports/export-persons.ts'
import { type PersonRow, personColumns, personCursor, personRow } from '#wire/exports/person-columns.ts'
import { refusal } from '../kit/answers.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { noSuchPerson, personFilters, readPersonFilters } from '../kit/person-filters.ts'
import { wholeNumberParam } from '../kit/query-params.ts'
import { answerExport, type ExportDeps, exportParams } from './answer-export.ts'
import { encoderOf } from './encoder-of.ts'

export type ExportPersonsDeps = EndpointDeps & ExportDeps & { readonly management: PersonStore }

const scope = 'person:read'

export function exportPersonsRoutes(deps: ExportPersonsDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    method: 'GET',
    path: '/persons/export',
    id: 'persons_export',
    tag: 'persons',
    summary: 'All persons that fit, newest first, as a download. `cursor` goes on with one that broke off.',
    scope,
    group: 'exports',
    query: {
      ...personFilters,
      cursor: wholeNumberParam({ description: 'Goes on behind the person with this cursor.', minimum: 1 }),
      ...exportParams,
    },
    success: {
      status: 200,
      contentType: 'application/x-ndjson',
      schema: Type.String({ description: 'JSON lines, CSV (text/csv) or Parquet, by `format`.' }),
    },
    handle: async call => {
      const { project, query, signal } = call
      const filters = readPersonFilters(query)
      if (query.uuid !== undefined && (await deps.management.findPersonByUuid(project.id, query.uuid)) === null)
        return refusal(noSuchPerson)
      return answerExport<PersonRow>(deps, call, {
        ...{ name: 'persons', scope, limit: query.limit, format: query.format },
        encoder: encoderOf(query.format, personColumns, deps.openParquetFile),
        cursorOf: personCursor,
        open: async () => ({
          batches: rowsOf(exportPersons(deps.management, project.id, filters, query.cursor ?? null, signal)),
          rowCountMax: null,
        }),
      })
    },
  })
}

async function* rowsOf(batches: ReturnType<typeof exportPersons>): AsyncGenerator<readonly PersonRow[]> {
  for await (const batch of batches) yield batch.map(personRow)
}
