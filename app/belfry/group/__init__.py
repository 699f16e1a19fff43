"""The group of workers, carried by Faust: who is a member, what each owns and stands by for, and
signs of life.

Faust and aiokafka join the group and keep its session; what members say and are told is computed in
`balance/`.
"""
