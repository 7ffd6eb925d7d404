// The people who may sign in: their roles, and links for those who are new or have forgotten their password.

import { useMutation, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { holdsScope, sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/controls/badge.tsx'
import { Button, IconButton } from '../../components/controls/button.tsx'
import { Select } from '../../components/fields/select.tsx'
import { useFocusOfRows } from '../../components/focus-of-rows.ts'
import { ConfirmDialog } from '../../components/overlays/dialog.tsx'
import { MenuButton } from '../../components/overlays/menu.tsx'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Skeleton } from '../../components/states/skeleton.tsx'
import { ErrorState, NotAllowed } from '../../components/states/states.tsx'
import { Count } from '../../components/text/count.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { formatOutsideText } from '../../components/text/outside-text.ts'
import { Time } from '../../components/text/time.tsx'
import { Page } from '../../shell/page.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { LinkDialog, type NewLink } from './link-dialog.tsx'
import { articleAndRole, type Role, roleOptions, type User } from './roles.ts'
import css from './users.module.css'

const usersKey = ['users']
const rowsMax = 1_000

export function Users() {
  const { data: session } = useSuspenseQuery(sessionQuery)
  const isAllowed = holdsScope(session.scopes, '*')
  const [isInviting, setInviting] = useState(false)
  const [link, setLink] = useState<NewLink | null>(null)
  const [question, setQuestion] = useState<Question | null>(null)
  const users = useQuery({
    queryKey: usersKey,
    queryFn: ({ signal }) => call('GET /api/users/', { query: { limit: rowsMax }, signal }),
    enabled: isAllowed,
  })
  const rows = users.data?.results ?? []
  const focusOfRows = useFocusOfRows(rows.map(({ id }) => id))
  if (!isAllowed)
    return (
      <Page title="Users">
        <NotAllowed what="Users">Only admins manage users. An admin can make you one.</NotAllowed>
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
      {users.isPending && <Skeleton what="users" />}
      {users.isError && users.data === undefined && (
        <ErrorState title="The users could not be loaded" error={users.error} onRetry={users.refetch} />
      )}
      {users.data !== undefined && (
        <ul className={css.users} {...focusOfRows}>
          {rows.map(user => (
            <UserRow
              key={user.id}
              user={user}
              isOwn={user.id === session.user.id}
              onLink={setLink}
              onQuestion={setQuestion}
            />
          ))}
        </ul>
      )}
      {users.data !== undefined && users.data.count > rows.length && (
        <p>
          The first <Count value={rows.length} /> of <Count value={users.data.count} /> users, by their first sign-in.
        </p>
      )}
      <InviteDialog isOpen={isInviting} onClose={() => setInviting(false)} onLink={setLink} />
      <LinkDialog link={link} onClose={() => setLink(null)} />
      <Asked question={question} onClose={() => setQuestion(null)} />
    </Page>
  )
}

/** What is done only after it was confirmed. */
interface Question {
  readonly about: 'delete' | 'sessions'
  readonly user: User
}

/** Not part of the row, which a deletion removes while this is open. */
function Asked({ question, onClose }: { question: Question | null; onClose: () => void }) {
  if (question === null) return null
  const { about, user } = question
  const path = { user_id: user.id }
  const name = nameUser(user)
  const common = { isDanger: true, isOpen: true, onClose }
  return about === 'delete' ? (
    <ConfirmDialog
      {...common}
      title={`Delete ${name}`}
      confirmLabel={`Delete ${name}`}
      onConfirm={async () => {
        await call('DELETE /api/users/{user_id}/', { path })
        await queries.invalidateQueries({ queryKey: usersKey })
      }}
    >
      Their sessions end at once. What they changed stays, with their name.
    </ConfirmDialog>
  ) : (
    <ConfirmDialog
      {...common}
      title={`Sign out ${name} everywhere`}
      confirmLabel={`Sign out ${name}`}
      onConfirm={async () => {
        await call('DELETE /api/users/{user_id}/sessions/', { path })
        showToast({ text: `${name} is signed out everywhere.` })
      }}
    >
      All their sessions end at once. They can sign in again with their password; who has none needs a link.
    </ConfirmDialog>
  )
}

interface UserRowProps {
  readonly user: User
  readonly isOwn: boolean
  readonly onLink: (link: NewLink) => void
  readonly onQuestion: (question: Question) => void
}

interface UserChange {
  readonly body: { readonly role?: Role; readonly disabled?: boolean; readonly sees_persons?: boolean }
  /** What follows the name: "is an editor". */
  readonly done: string
  readonly undo?: UserChange
}

function UserRow({ user, isOwn, onLink, onQuestion }: UserRowProps) {
  const path = { user_id: user.id }
  const name = nameUser(user)
  const change = useMutation({
    mutationFn: ({ body }: UserChange) => call('PATCH /api/users/{user_id}/', { path, body }),
    onSuccess: (_, { done, undo }) => {
      showToast({ text: `${name} ${done}.`, ...(undo && { onUndo: () => change.mutate(undo) }) })
      if (isOwn) queries.invalidateQueries({ queryKey: sessionQuery.queryKey })
    },
    onError: error => showToast({ kind: 'bad', text: `${name} is not changed. ${error.message}` }),
    onSettled: () => queries.invalidateQueries({ queryKey: usersKey }),
  })
  const makeLink = useMutation({
    mutationFn: () => call('POST /api/users/{user_id}/reset_link/', { path }),
    onSuccess: ({ link, expires_at }) => onLink({ link, expiresAt: expires_at, for: name }),
    onError: error => showToast({ kind: 'bad', text: error.message }),
  })
  const set = (next: Omit<UserChange, 'undo'>, before: Omit<UserChange, 'undo'>) => {
    // Who has lowered or disabled themselves may no longer take it back.
    if (!change.isPending) change.mutate(isOwn ? next : { ...next, undo: before })
  }
  const toRole = (role: Role) => ({ body: { role }, done: `is ${articleAndRole[role]}` })
  const toDisabled = (disabled: boolean) => ({ body: { disabled }, done: disabled ? 'is disabled' : 'is enabled' })
  const toPersons = (seen: boolean) => ({
    body: { sees_persons: seen },
    done: seen ? 'sees persons' : 'no longer sees persons',
  })
  const actions: Readonly<Record<string, () => void>> = {
    link: () => makeLink.mutate(),
    persons: () => set(toPersons(!user.sees_persons), toPersons(user.sees_persons)),
    sessions: () => onQuestion({ about: 'sessions', user }),
    disable: () => set(toDisabled(!user.disabled), toDisabled(user.disabled)),
    delete: () => onQuestion({ about: 'delete', user }),
  }
  const persons = { id: 'persons', label: user.sees_persons ? 'Hide persons from them' : 'Let them see persons' }
  return (
    <li>
      <div className={css.who}>
        <span>
          <Outside text={user.name || 'Unnamed user'} /> {isOwn && <Badge kind="info">You</Badge>}{' '}
          {user.disabled && <Badge kind="caution">Disabled</Badge>}
        </span>
        <span className={css.second}>
          <Outside text={user.email ?? 'no e-mail address'} />
          {user.role === 'viewer' && (user.sees_persons ? ', sees persons' : ', sees no persons')}
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
        onChange={role => set(toRole(role as Role), toRole(user.role))}
        isBusy={change.isPending}
      />
      <MenuButton
        label={`Actions for ${name}`}
        items={[
          { id: 'link', label: 'Make a link for a new password' },
          ...(user.role === 'viewer' ? [persons] : []),
          { id: 'sessions', label: 'Sign out everywhere' },
          { id: 'disable', label: user.disabled ? 'Enable' : 'Disable' },
          { id: 'delete', label: 'Delete', icon: 'trash', isDanger: true, startsGroup: true },
        ]}
        onAction={id => actions[id]?.()}
      >
        <IconButton icon="ellipsis" label={`Actions for ${name}`} />
      </MenuButton>
    </li>
  )
}

function nameUser({ name, email }: User): string {
  return formatOutsideText(name || email || 'Unnamed user')
}
