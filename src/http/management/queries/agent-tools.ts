// The tools below `mcp_tools`, which PostHog instructs agents to call first. A tool's error has the status and fields of
// any other error, plus the fields of PostHog's tools; PostHog itself answers failing SQL with 200. Requests that reach no
// tool get an ordinary error.

import Type from 'typebox'
import type { SqlRows } from '#ports/events/sql-queries.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { TableLines, toolAnswerSchema } from '#wire/insights/tool-texts.ts'
import { jsonObjectSchema, nullable } from '#wire/management/shapes.ts'
import { wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  answerFromEventStore,
  createInvalidInputError,
  encodeEachInSteps,
  refusal,
} from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { listClosedTables, runHogQL, toSqlWireError } from './hogql-query.ts'
import { isCertainlyCaughtUp } from './query.ts'
import { readTaxonomy, taxonomyKinds } from './read-taxonomy.ts'

const scope = 'query:read'

const sqlArgs = Type.Object(
  {
    query: Type.String({ minLength: 1, description: 'SQL, as in a HogQLQuery of `/query/`.' }),
    truncate: Type.Optional(
      Type.Boolean({
        description: 'Whether to cut objects and lists longer than 500 characters. Default: true.',
      }),
    ),
    connectionId: Type.Optional(nullable(Type.String({ description: 'Only null: other sources are not supported.' }))),
    sendRawQuery: Type.Optional(
      nullable(Type.Boolean({ description: 'Only false: other sources are not supported.' })),
    ),
  },
  { additionalProperties: false },
)

const taxonomyArgs = Type.Object(
  { query: jsonObjectSchema(`\`kind\` is one of ${taxonomyKinds.join(', ')}; the other fields depend on it.`) },
  { additionalProperties: false },
)

export function agentToolsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'POST /mcp_tools/execute_sql',
      id: 'mcp_tools_execute_sql',
      scope,
      summary: 'Run SQL like `/query/`; returns the rows as a text table.',
      body: Type.Object({ args: sqlArgs }),
      success: { status: 200, schema: toolAnswerSchema },
      handle: ({ caller, project, body: { args }, signal }) => {
        for (const name of ['connectionId', 'sendRawQuery'] as const)
          if (args[name] != null && args[name] !== false)
            return answerToolCall(async () => refusal(createInvalidInputError(`args.${name}`, noSources)))
        const { query: sql, truncate: truncatesValues = true } = args
        return answerToolCall(async () => {
          const complete = await isCertainlyCaughtUp(deps, project.id)
          const ran = await runHogQL(
            deps.events,
            { projectId: project.id, sql, values: {}, closedTables: listClosedTables(caller) },
            signal,
          )
          return ran.ok
            ? answerTable(ran.value, { sql, truncatesValues, complete })
            : refusal(toSqlWireError(ran.error, sql, 'args.query'))
        })
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /mcp_tools/read_taxonomy',
      id: 'mcp_tools_read_taxonomy',
      scope,
      summary: 'List available events, properties and values, as text.',
      body: Type.Object({ args: taxonomyArgs }),
      success: { status: 200, schema: toolAnswerSchema },
      handle: ({ caller, project, body: { args }, signal }) =>
        answerToolCall(async () => {
          const read = await readTaxonomy(deps, args.query, { caller, projectId: project.id, signal })
          if (!read.ok) return refusal(read.error)
          return answer(200, { success: true, content: read.value, structured_content: { query: args.query } })
        }),
    }),
  ]
}

const noSources = 'Connections to other sources are not supported: omit this field.'

/** The maximum length of a row. It is limited because each row is parsed in one go. */
const rowCharsMax = 1024 * 1024
const rowTooLarge = wireError(
  400,
  'query_too_large',
  'A row exceeds 1 MiB. Select fewer or shorter columns, or use `/query/`.',
  'args.query',
)

async function answerTable(
  { columns, rows, rowCountMax, hasMore }: SqlRows,
  {
    sql,
    truncatesValues,
    complete,
  }: { readonly sql: string; readonly truncatesValues: boolean; readonly complete: boolean },
): Promise<Answer> {
  if (rows.some(row => row.length > rowCharsMax)) return refusal(rowTooLarge)
  const table = new TableLines({ truncatesValues })
  // Escaped line by line, since an answer may have 32 MB.
  const escapeLine = (line: string) => JSON.stringify(line).slice(1, -1)
  const lines = await runInSlices(
    encodeEachInSteps([JSON.stringify(columns), ...rows], row => escapeLine(table.lineOf(row))),
  )
  const notes = [
    ...(rows.length === 0 ? ['No rows.'] : []),
    ...(hasMore ? [`Only the first ${rowCountMax} rows are shown: add a LIMIT, or narrow the query.`] : []),
    ...(table.cutCount > 0 ? [`${table.cutCount} values were cut: send truncate: false for all of them.`] : []),
    ...(complete ? [] : ['Events are still being processed: results may be incomplete.']),
  ]
  const content = [...lines, ...(notes.length > 0 ? ['', ...notes.map(escapeLine)] : [])].join('\\n')
  const structured = { query: { kind: 'HogQLQuery', query: sql }, hasMore, limit: rowCountMax, complete }
  return {
    status: 200,
    json: `{"success":true,"content":"${content}","structured_content":${JSON.stringify(structured)}}`,
  }
}

/** Runs a tool; an error also has the fields of PostHog's tools. */
async function answerToolCall(run: () => Promise<Answer>): Promise<Answer> {
  const answered = await answerFromEventStore(run)
  if (answered.status === 200) return answered
  const error = JSON.parse(String(answered.json)) as { readonly detail: string }
  return { ...answered, json: JSON.stringify({ ...error, success: false, content: `Tool failed: ${error.detail}` }) }
}
