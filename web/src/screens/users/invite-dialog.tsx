import { useMutation } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { call } from '../../api/client.ts'
import { Button } from '../../components/controls/button.tsx'
import { Checkbox } from '../../components/controls/checkbox.tsx'
import { RadioGroup } from '../../components/controls/radio-group.tsx'
import { Form } from '../../components/fields/form.tsx'
import { splitError } from '../../components/fields/split-error.ts'
import { TextField } from '../../components/fields/text-field.tsx'
import { Dialog } from '../../components/overlays/dialog.tsx'
import { Refusal } from '../../components/states/states.tsx'
import { formatOutsideText } from '../../components/text/outside-text.ts'
import type { NewLink } from './link-dialog.tsx'
import { type Role, roleOptions } from './roles.ts'

export interface InviteDialogProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onLink: (link: NewLink) => void
}

export function InviteDialog(props: InviteDialogProps) {
  // What was typed is forgotten when it closes.
  return props.isOpen ? <OpenInviteDialog {...props} /> : null
}

function OpenInviteDialog({ onClose, onLink }: InviteDialogProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('viewer')
  const [seesPersons, setSeesPersons] = useState(true)
  const invite = useMutation({
    mutationFn: () =>
      call('POST /api/invitations/', {
        body: {
          role,
          ...(role === 'viewer' && { sees_persons: seesPersons }),
          ...(email.trim() !== '' && { email }),
        },
      }),
    onSuccess: ({ link, expires_at }) => {
      onClose()
      onLink({ link, expiresAt: expires_at, for: formatOutsideText(email.trim() || 'somebody new') })
    },
  })
  const id = useId()
  const state = { isBusy: invite.isPending }
  const { errors, rest } = splitError(invite.error, ['email'])
  return (
    <Dialog
      title="Invite somebody"
      isOpen
      onClose={onClose}
      isKept={email !== ''}
      actions={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="filled" type="submit" form={id} {...state}>
            Make a link
          </Button>
        </>
      }
    >
      <Form id={id} onSubmit={() => invite.mutate()} {...state}>
        <TextField
          label="E-mail"
          type="email"
          isOptional
          value={email}
          onChange={setEmail}
          error={errors.email}
          autoFocus
        />
        <RadioGroup
          label="Role"
          choices={roleOptions.map(({ id, label, detail }) => ({ id, label, help: detail }))}
          value={role}
          onChange={setRole}
        />
        {role === 'viewer' && (
          <Checkbox
            label="Sees persons"
            help="Their properties, events and recordings. Without it, flags and settings alone."
            isOn={seesPersons}
            onChange={setSeesPersons}
          />
        )}
        <Refusal error={rest} />
      </Form>
    </Dialog>
  )
}
