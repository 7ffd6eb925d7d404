import { useMutation } from '@tanstack/react-query'
import { useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { sessionQuery } from '../../api/session.ts'
import { Button } from '../../components/controls/button.tsx'
import { TextField } from '../../components/fields/text-field.tsx'
import { EntryForm } from './entry-form.tsx'
import { Refusal } from './refusal.tsx'

export function SignIn() {
  const { next = '/' } = useSearch({ from: '/sign-in' })
  const { history } = useRouter()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => call('POST /api/session/', { body: { email, password } }),
    onSuccess: session => {
      queries.clear()
      queries.setQueryData(sessionQuery.queryKey, session)
      history.replace(`/ui${next}`)
    },
  })
  return (
    <EntryForm title="Sign in" onSubmit={() => signIn.mutate()}>
      <TextField
        label="E-mail"
        type="email"
        name="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        autoFocus
      />
      <TextField
        label="Password"
        type="password"
        name="password"
        autoComplete="current-password"
        value={password}
        onChange={setPassword}
      />
      <Refusal error={signIn.error} />
      <Button
        type="submit"
        kind="filled"
        isBusy={signIn.isPending}
        disabledReason={email === '' || password === '' ? 'Type e-mail and password first' : null}
      >
        Sign in
      </Button>
      <p>
        No password, or forgotten? An admin can give you a link. On the machine that runs Pennon,{' '}
        <code>pennon sign-in-link</code> prints one.
      </p>
    </EntryForm>
  )
}
