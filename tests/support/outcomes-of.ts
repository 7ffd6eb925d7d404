import type { Pennon } from './pennon.ts'

/** The outcomes of a project's events, with counts. */
export async function outcomesOf(pennon: Pennon, projectId: number): Promise<[string, number][]> {
  const { outcomes } = await pennon.api<{ outcomes: { outcome: string; count: number }[] }>(
    'GET',
    `/api/projects/${projectId}/ingestion_status/`,
  )
  return outcomes.map(({ outcome, count }) => [outcome, count])
}
