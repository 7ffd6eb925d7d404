import type { Operations } from '../../api/schema.ts'
import type { Option } from '../../components/fields/options.tsx'

export type User = Operations['GET /api/users/']['answer']['results'][number]
export type Role = User['role']

export const roleOptions: readonly (Option & { readonly id: Role })[] = [
  { id: 'viewer', label: 'Viewer', detail: 'Sees everything, changes nothing' },
  { id: 'editor', label: 'Editor', detail: 'Changes flags, cohorts, surveys and experiments' },
  { id: 'admin', label: 'Admin', detail: 'Changes everything, users and keys included' },
]

export const articleAndRole = { viewer: 'a viewer', editor: 'an editor', admin: 'an admin' } as const
