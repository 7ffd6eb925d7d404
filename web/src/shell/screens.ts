// The screens that the rail and the palette offer. One that is not built yet is absent.

import { holdsScope, type SignedIn } from '../api/session.ts'
import type { IconName } from '../components/icon-names.ts'

export interface Screen {
  readonly label: string
  readonly icon: IconName
  readonly to: '/p/$projectId' | '/users' | '/me'
  readonly params?: { readonly projectId: string }
}

export function listScreens({ scopes }: Pick<SignedIn, 'scopes'>, projectId: string): readonly Screen[] {
  return [
    { label: 'Home', icon: 'house', to: '/p/$projectId', params: { projectId } },
    ...(holdsScope(scopes, '*') ? [{ label: 'Users', icon: 'users', to: '/users' } as const] : []),
    { label: 'Your account', icon: 'user', to: '/me' },
  ]
}
