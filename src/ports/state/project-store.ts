// Projects: the tokens by which capture and evaluation find them, and their settings. Flag definitions carry a copy to
// every front, so every write raises the revision.

import type { Change } from '#core/author.ts'
import type { IngestionSettings, Project, Quotas } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { Page, Written } from './written.ts'

/** Tokens are unique among the projects that are not deleted. The id of a deleted project is never used again. */
export interface ProjectStore {
  createProject(input: NewProject, change: Change): Promise<Result<Written<Project>, 'token_taken'>>
  /** `clientSettings`, `ingestion` and `quotas` are merged into the stored ones, name by name; other fields are replaced. */
  updateProject(
    projectId: number,
    patch: Partial<Omit<NewProject, 'uuid' | 'quotas' | 'ingestion'>> & {
      readonly quotas?: Partial<Quotas>
      readonly ingestion?: Partial<IngestionSettings>
    },
    change: Change,
  ): Promise<Result<Written<Project>, 'not_found' | 'token_taken'>>
  deleteProject(projectId: number, change: Change): Promise<Result<Written<null>, 'not_found'>>
  findProject(projectId: number): Promise<Project | null>
  /** In the order of their ids; only those in `ids`, if given. `Page` explains short pages. */
  listProjects(page: { limit: number; offset: number; ids?: readonly number[] }): Promise<Page<Project>>
  /** Ids of all projects that are not deleted, for schedules that visit them all. */
  listProjectIds(): Promise<readonly number[]>
}

export type NewProject = Omit<Project, 'id' | 'createdAtMs'>
