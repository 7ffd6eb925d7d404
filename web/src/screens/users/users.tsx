// The people who may sign in: their roles, and links for those who are new or have forgotten their password.

import { useMutation, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { holdsScope, sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/controls/badge.tsx'
import { Button, IconButton } from '../../components/controls/button.tsx'
import { Select } from '../../components/fields/select.tsx'
import { ConfirmDialog } from '../../components/overlays/dialog.tsx'
import { MenuButton } from '../../components/overlays/menu.tsx'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { NotAllowed } from '../../components/states/states.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { formatOutsideText } from '../../components/text/outside-text.ts'
import { Time } from '../../components/text/time.tsx'
import { Page } from '../../shell/page.tsx'
import { Refusal } from '../sign-in/refusal.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { LinkDialog, type NewLink } from './link-dialog.tsx'
import { type Role, roleOptions, type User } from './roles.ts'
import css from './users.module.css'

const usersKey = ['users']

export function Users() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  const isAllowed = holdsScope(session.scopes, '*')
  const [isInviting, setInviting] = useState(false)
  const [link, setLink] = useState<NewLink | null>(null)
  const users = useQuery({
    queryKey: usersKey,
    queryFn: ({ signal }) => call('GET /api/users/', { query: { limit: 1_000 }, signal }),
    enabled: isAllowed,
  })
  if (!isAllowed)
    return (
      <Page title="Users">
        <NotAllowed what="Users" right="*" givenBy="An admin" />
      </Page>
    )
  return (
    <Page
      title="Users"
      actions={
        <Button kind="filled" icon="plus" onPress={() => setInviting(true)}>
          Invite somebody
        </Button>
      }
    >
      {users.isError && <Refusal error={users.error} />}
      {users.isPending && <Skeleton what="users" />}
      {users.isSuccess && (
        <ul className={css.users}>
          {users.data.results.map(user => (
            <UserRow key={user.id} user={user} isOwn={user.id === session.user.id} onLink={setLink} />
          ))}
        </ul>
      )}
      <InviteDialog isOpen={isInviting} onClose={() => setInviting(false)} onLink={setLink} />
      <LinkDialog link={link} onClose={() => setLink(null)} />
    </Page>
  )
}

interface UserRowProps {
  readonly user: User
  readonly isOwn: boolean
  readonly onLink: (link: NewLink) => void
}

function UserRow({ user, isOwn, onLink }: UserRowProps) {
  const [isDeleting, setDeleting] = useState(false)
  const path = { user_id: user.id }
  const name = formatOutsideText(user.name || user.email || 'Unnamed user')
  const change = useMutation({
    mutationFn: (body: { role?: Role; disabled?: boolean }) => call('PATCH /api/users/{user_id}/', { path, body }),
    onSuccess: () => showToast({ text: `${name} is changed.` }),
    onError: error => showToast({ kind: 'bad', text: `${name} is not changed. ${error.message}` }),
    onSettled: () => queries.invalidateQueries({ queryKey: usersKey }),
  })
  const makeLink = useMutation({
    mutationFn: () => call('POST /api/users/{user_id}/reset_link/', { path }),
    onSuccess: ({ link, expires_at }) => onLink({ link, expiresAt: expires_at, for: name }),
    onError: error => showToast({ kind: 'bad', text: error.message }),
  })
  const endSessions = useMutation({
    mutationFn: () => call('DELETE /api/users/{user_id}/sessions/', { path }),
    onSuccess: () => showToast({ text: `${name} is signed out everywhere.` }),
    onError: error => showToast({ kind: 'bad', text: error.message }),
  })
  const actions: Readonly<Record<string, () => void>> = {
    link: () => makeLink.mutate(),
    sessions: () => endSessions.mutate(),
    disable: () => change.mutate({ disabled: !user.disabled }),
    delete: () => setDeleting(true),
  }
  return (
    <li>
      <div className={css.who}>
        <span>
          <Outside text={user.name || 'Unnamed user'} /> {isOwn && <Badge kind="info">You</Badge>}{' '}
          {user.disabled && <Badge kind="caution">Disabled</Badge>}
        </span>
        <span className={css.second}>
          <Outside text={user.email ?? 'no e-mail address'} />
          {user.last_seen_at !== null && (
            <>
              , seen <Time at={user.last_seen_at} />
            </>
          )}
        </span>
      </div>
      <Select
        label={`Role of ${name}`}
        isLabelHidden
        options={roleOptions}
        value={user.role}
        onChange={role => change.mutate({ role: role as Role })}
      />
      <MenuButton
        label={`Actions for ${name}`}
        items={[
          { id: 'link', label: 'Make a link for a new password' },
          { id: 'sessions', label: 'Sign out everywhere' },
          { id: 'disable', label: user.disabled ? 'Enable' : 'Disable' },
          { id: 'delete', label: 'Delete', icon: 'trash', isDanger: true, startsGroup: true },
        ]}
        onAction={id => actions[id]?.()}
      >
        <IconButton icon="ellipsis" label={`Actions for ${name}`} />
      </MenuButton>
      <ConfirmDialog
        title={`Delete ${name}`}
        confirmLabel={`Delete ${name}`}
        isDanger
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call('DELETE /api/users/{user_id}/', { path })
          queries.invalidateQueries({ queryKey: usersKey })
        }}
      >
        Their sessions end at once. What they changed stays, with their name.
      </ConfirmDialog>
    </li>
  )
}
